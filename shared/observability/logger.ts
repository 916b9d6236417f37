import { Logger } from '@aws-lambda-powertools/logger';
import type { Log } from '../ports/log.ts';

/** Structured logger for the Log port. Level and service name come from the library's environment variables. */
export const logger = new Logger();

export const log: Log = {
  debug: (message, fields) => logger.debug(message, fields ?? {}),
  info: (message, fields) => logger.info(message, fields ?? {}),
  warn: (message, fields) => logger.warn(message, fields ?? {}),
  error: (message, fields) => logger.error(message, fields ?? {}),
};
