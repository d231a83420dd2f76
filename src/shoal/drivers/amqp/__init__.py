"""RabbitMQ, or anybody who speaks AMQP 0.9.1."""
