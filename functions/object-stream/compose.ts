import { loadConfig, streamConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export const composeObjectStream = (environment: Environment) =>
  composeControllers(environment, loadConfig(streamConfig, environment)).onObjectRecords;
