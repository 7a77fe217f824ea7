# Answers the cases of the conformance suite with WWW::RobotRules of CPAN.
use strict;
use warnings;
use JSON::PP;
use MIME::Base64;
use WWW::RobotRules;

$| = 1;
my $json = JSON::PP->new->utf8;
while (my $line = <STDIN>) {
    my $q = $json->decode($line);
    my $body = exists $q->{robots} ? $q->{robots} : decode_base64($q->{robots_base64});
    utf8::encode($body) if exists $q->{robots};
    my $rules = WWW::RobotRules->new($q->{agent});
    my ($site) = $q->{url} =~ m{^(\w+://[^/?#]*)};
    my $allowed = eval { $rules->parse("$site/robots.txt", $body); $rules->allowed($q->{url}) };
    my $answer = defined $allowed ? { allowed => $allowed ? JSON::PP::true : JSON::PP::false } : { error => "$@" };
    print $json->encode($answer), "\n";
}
