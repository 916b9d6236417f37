import { loadConfig, streamConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export const composeHealthStream = (environment: Environment) =>
  composeControllers(environment, loadConfig(streamConfig, environment)).onHealthRecords;
