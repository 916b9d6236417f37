import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { loadConfig, streamConfig } from '../../shared/config/environment.ts';
import type { ItemChangeRecord } from '../../shared/ticks/item-change.ts';
import { onHealthChange } from './work.ts';

export function composeHealthStream(environment: Environment) {
  const dependencies = composeDependencies(environment, loadConfig(streamConfig, environment));
  return (records: readonly ItemChangeRecord[]) => onHealthChange(dependencies, records);
}
