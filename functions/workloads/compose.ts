import { apiAuthorities } from '../../shared/adapters/trust/api-authorities.ts';
import { evictorConfig, loadConfig } from '../../shared/config/environment.ts';
import type { ItemChangeRecord } from '../../shared/controllers/framework/item-change.ts';
import { onWorkloadChange, runWorkloads } from '../../shared/controllers/workloads/reconcile.ts';
import { composeDependencies, type Environment } from '../controllers.ts';

export function composeWorkloads(environment: Environment) {
  const config = loadConfig(evictorConfig, environment);
  const dependencies = composeDependencies(environment, config, () => ({ apiAuthorities }));
  return {
    policy: config.policy,
    tick: (slot: number, budgetMs: number) => runWorkloads(dependencies, { slot, budgetMs }),
    onRecords: (records: readonly ItemChangeRecord[]) => onWorkloadChange(dependencies, records),
  };
}
