"""The client of RabbitMQ, and of any other broker that speaks AMQP 0.9.1."""
