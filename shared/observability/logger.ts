import { Logger } from '@aws-lambda-powertools/logger';
import type { Log } from './log.ts';

export const logger = new Logger();

const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly (keyof Log)[];

/**
 * A log without what is below a level. The library cannot do it: Lambda sets AWS_LAMBDA_LOG_LEVEL to the level of the
 * function's own filter, and the library prefers that to every other level. The filter stays at INFO, because it would
 * drop metrics: these are lines without a level.
 *
 * @param least DEBUG, INFO, WARN or ERROR; any other text is INFO
 */
export function logFrom(least: string | undefined, target: Pick<Logger, keyof Log>): Log {
  const known = LEVELS.findIndex((level) => level.toUpperCase() === least);
  const from = known === -1 ? LEVELS.indexOf('info') : known;
  const at = (level: keyof Log): Log[keyof Log] =>
    LEVELS.indexOf(level) < from ? () => {} : (message, fields) => target[level](message, fields ?? {});
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** The log of this function. Its service name comes from the library's environment variables. */
export const log: Log = logFrom(process.env['POWERTOOLS_LOG_LEVEL'], logger);
