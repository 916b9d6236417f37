import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

/** A process like that of a function on Lambda. Lambda's own filter is at INFO. */
function linesOf(level: string | undefined): unknown[] {
  const script = `
    const { log } = await import(${JSON.stringify(new URL('./logger.ts', import.meta.url).href)});
    for (const at of ['debug', 'info', 'warn', 'error']) log[at]('line', { at });`;
  const environment = { AWS_LAMBDA_LOG_LEVEL: 'INFO', AWS_LAMBDA_LOG_FORMAT: 'JSON', POWERTOOLS_SERVICE_NAME: 'fn' };
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...environment, ...(level === undefined ? {} : { POWERTOOLS_LOG_LEVEL: level }) },
    encoding: 'utf8',
  });
  const lines = `${stdout}${stderr}`.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => (JSON.parse(line) as { at: unknown }).at).toSorted();
}

describe('the log of a function on Lambda', () => {
  it('has no line below the level of the function, although Lambda sets a level of its own', () => {
    expect(linesOf('WARN')).toEqual(['error', 'warn']);
    expect(linesOf('ERROR')).toEqual(['error']);
  });

  it('has lines from INFO on without a level', () => {
    expect(linesOf(undefined)).toEqual(['error', 'info', 'warn']);
  });
});
