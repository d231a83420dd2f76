<?php
// Sends messages with Symfony Messenger: php messenger.php json|php DSN URL...
foreach (['Messenger', 'Messenger/Bridge/Amqp', 'Messenger/Bridge/Redis', 'Serializer', 'PropertyAccess'] as $part) {
    require_once "/usr/share/php/Symfony/Component/$part/autoload.php";
}

use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpTransportFactory;
use Symfony\Component\Messenger\Bridge\Redis\Transport\RedisTransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;
use Symfony\Component\Messenger\Transport\Serialization\Serializer;

final class CrawlUrl
{
    public function __construct(public string $url, public int $priority = 0, public ?string $chain = null) {}
}

[, $format, $dsn] = $argv;
$factory = str_starts_with($dsn, 'redis') ? new RedisTransportFactory() : new AmqpTransportFactory();
$serializer = $format === 'json' ? new Serializer() : new PhpSerializer();
$transport = $factory->createTransport($dsn, [], $serializer);
foreach (array_slice($argv, 3) as $url) {
    $transport->send(new Envelope(new CrawlUrl($url, 5)));
}
