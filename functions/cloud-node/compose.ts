import { cloudNodeConfig, loadConfig } from '../../shared/config/environment.ts';
import { composeCloud } from '../cloud.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export function composeCloudNode(environment: Environment) {
  const config = loadConfig(cloudNodeConfig, environment);
  const controllers = composeControllers(environment, config, () => ({ cloud: composeCloud(environment, config) }));
  return { policy: config.policy, tick: controllers.tickCloudNode, onInstanceChange: controllers.onInstanceChange };
}
