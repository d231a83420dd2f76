<?php
// Handles COUNT messages with Symfony Messenger: php messenger_reading.php DSN COUNT
foreach (['Messenger', 'Messenger/Bridge/Amqp', 'Messenger/Bridge/Redis', 'Serializer', 'PropertyAccess'] as $part) {
    require_once "/usr/share/php/Symfony/Component/$part/autoload.php";
}

use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpTransportFactory;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransportFactory;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Transport\Serialization\Serializer;
use Symfony\Component\Messenger\Worker;

final class Thing
{
    public function __construct(public string $path, public int $size) {}
}

[, $dsn, $count] = $argv;
$factory = str_starts_with($dsn, 'redis') ? new RedisTransportFactory() : new AmqpTransportFactory();
$transport = $factory->createTransport($dsn, [], new Serializer());
$worker = null;
$handle = function (Thing $thing) use (&$worker, &$count): void {
    echo json_encode(['path' => $thing->path, 'size' => $thing->size]), "\n";
    if (--$count <= 0) {
        $worker->stop();
    }
};
$bus = new MessageBus([new HandleMessageMiddleware(new HandlersLocator([Thing::class => [$handle]]))]);
$worker = new Worker(['shoal' => $transport], $bus);
$worker->run(['sleep' => 100000]);
