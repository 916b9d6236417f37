import { composeCloud } from '../../shared/aws/cloud.ts';
import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { cloudNodeConfig, loadConfig } from '../../shared/config/environment.ts';
import { processInstance, runCloudNode } from './work.ts';

export function composeCloudNode(environment: Environment) {
  const config = loadConfig(cloudNodeConfig, environment);
  const dependencies = { ...composeDependencies(environment, config), cloud: composeCloud(environment, config) };
  return {
    policy: config.policy,
    tick: (slot: number, budgetMs: number) => runCloudNode(dependencies, { slot, budgetMs }),
    onInstanceChange: (instanceId: string, budgetMs: number) => processInstance(dependencies, instanceId, budgetMs),
  };
}
