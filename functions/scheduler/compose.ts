import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { controllerConfig, loadConfig } from '../../shared/config/environment.ts';
import { scheduler } from './work.ts';

export function composeScheduler(environment: Environment) {
  const config = loadConfig(controllerConfig, environment);
  const { pass } = scheduler(composeDependencies(environment, config));
  return { policy: config.policy, tick: (slot: number, budgetMs: number) => pass({ slot, budgetMs }) };
}
