# Runs the fetch cases of the conformance suite with LWP::RobotUA of CPAN.
use strict;
use warnings;
use JSON::PP;
use LWP::RobotUA;

$| = 1;
my $json = JSON::PP->new->utf8;
while (my $line = <STDIN>) {
    my $q = $json->decode($line);
    my $ua = LWP::RobotUA->new(agent => "$q->{agent}/1.0", from => 'bot@example.com', timeout => 30, keep_alive => 0);
    $ua->delay(0);
    $ua->get($_) for @{ $q->{fetch} };    # the log of the server says what was requested
    print "{}\n";
}
