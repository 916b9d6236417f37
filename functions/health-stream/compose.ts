import { loadConfig, streamConfig } from '../../shared/config/environment.ts';
import type { ItemChangeRecord } from '../../shared/controllers/framework/item-change.ts';
import { onHealthChange } from '../../shared/controllers/health-stream/reconcile.ts';
import { composeDependencies, type Environment } from '../controllers.ts';

export function composeHealthStream(environment: Environment) {
  const dependencies = composeDependencies(environment, loadConfig(streamConfig, environment));
  return (records: readonly ItemChangeRecord[]) => onHealthChange(dependencies, records);
}
