// Answers the cases of the conformance suite with the package exclusion of npm.
import { RobotsTxt } from 'exclusion';
import { serve } from './serve.js';

serve((q) => {
  const robots = new RobotsTxt(q.body);
  return { allowed: robots.isPathAllowed(q.path, q.agent), delay: (robots.getDelay(q.agent) || 0) / 1000 };
});
