import { setTimeout as pause } from 'node:timers/promises';
import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { evictorConfig, loadConfig } from '../../shared/config/environment.ts';
import { runEvictorSlot } from './work.ts';

export function composeEvictor(environment: Environment) {
  const config = loadConfig(evictorConfig, environment);
  const dependencies = composeDependencies(environment, config);
  return {
    policy: config.policy,
    tick: (slot: number, budgetMs: number) => runEvictorSlot(dependencies, { slot, budgetMs }, pause),
  };
}
