import { cloudNodeConfig, loadConfig } from '../../shared/config/environment.ts';
import { processInstance, runCloudNode } from '../../shared/controllers/cloud-node/reconcile.ts';
import { composeCloud } from '../cloud.ts';
import { composeDependencies, type Environment } from '../controllers.ts';

export function composeCloudNode(environment: Environment) {
  const config = loadConfig(cloudNodeConfig, environment);
  const dependencies = composeDependencies(environment, config, () => ({ cloud: composeCloud(environment, config) }));
  return {
    policy: config.policy,
    tick: (slot: number, budgetMs: number) => runCloudNode(dependencies, { slot, budgetMs }),
    onInstanceChange: (instanceId: string, budgetMs: number) => processInstance(dependencies, instanceId, budgetMs),
  };
}
