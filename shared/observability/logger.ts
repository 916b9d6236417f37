import { Logger } from '@aws-lambda-powertools/logger';
import type { Log } from '../ports/log.ts';

/** The platform's structured logger behind the Log port. Level and service name come from its own environment names. */
export const logger = new Logger();

export const log: Log = {
  debug: (message, fields) => logger.debug(message, fields ?? {}),
  info: (message, fields) => logger.info(message, fields ?? {}),
  warn: (message, fields) => logger.warn(message, fields ?? {}),
  error: (message, fields) => logger.error(message, fields ?? {}),
};
