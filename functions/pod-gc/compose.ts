import { createHash } from 'node:crypto';
import { loadConfig, podGcConfig } from '../../shared/config/environment.ts';
import { composeCloud } from '../cloud.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export function composePodGc(environment: Environment) {
  const config = loadConfig(podGcConfig, environment);
  const controllers = composeControllers(environment, config, () => ({
    cloud: composeCloud(environment, config),
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
  }));
  return { policy: config.policy, tick: controllers.tickPodGc };
}
