import { apiAuthorities } from '../../shared/access/api-authorities.ts';
import { policiesOnDemand } from '../../shared/admission/policies-on-demand.ts';
import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { evictorConfig, loadConfig } from '../../shared/config/environment.ts';
import type { ItemChangeRecord } from '../../shared/ticks/item-change.ts';
import { workloadDependencies } from './dependencies.ts';
import { onWorkloadChange, runWorkloads } from './work.ts';

export function composeWorkloads(environment: Environment) {
  const config = loadConfig(evictorConfig, environment);
  const common = composeDependencies(environment, config);
  const dependencies = workloadDependencies(common, { apiAuthorities, admitObjects: policiesOnDemand(common) });
  return {
    policy: config.policy,
    tick: (slot: number, budgetMs: number) => runWorkloads(dependencies, { slot, budgetMs }),
    onRecords: (records: readonly ItemChangeRecord[]) => onWorkloadChange(dependencies, records),
  };
}
