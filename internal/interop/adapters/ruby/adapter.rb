# Answers the cases of the conformance suite with the gem webrobots.
require 'base64'
require 'json'
require 'uri'
require 'webrobots'

$stdout.sync = true
$stdin.each_line do |line|
  q = JSON.parse(line)
  body = q.key?('robots') ? q['robots'] : Base64.decode64(q['robots_base64']).force_encoding('UTF-8')
  begin
    robots = WebRobots.new(q['agent'], http_get: ->(_uri) { body })
    answer = { allowed: robots.allowed?(q['url']), delay: robots.crawl_delay(q['url']).to_f, sitemaps: robots.sitemaps(q['url']) }
  rescue StandardError => e
    answer = { error: e.message }
  end
  puts JSON.generate(answer)
end
