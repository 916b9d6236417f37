/**
 * Texts that are almost right, and long: a pattern that may divide a text in several ways tries all of them before it
 * refuses. With some patterns the time grew with the square of the length, or doubled with each part: one request kept
 * the process busy for minutes.
 */
import { describe, expect, it } from 'vitest';
import { acceptsGzip } from '../../shared/api/response-body.ts';
import { FORMATS } from '../../shared/kinds/custom-resources/formats.ts';
import { isTimeZone, parseCron } from '../../shared/kinds/jobs/cron-schedule.ts';
import { coversPath } from '../../shared/kinds/roles/policy-rule.ts';
import { celFunctions } from '../../shared/kubernetes/cel/expressions.ts';
import { parseDuration } from '../../shared/kubernetes/cel/times.ts';
import { parseGoDuration } from '../../shared/kubernetes/go-duration.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import { checkTimeout } from '../../shared/kubernetes/request.ts';
import { parseInt64, parseUint64 } from '../../shared/kubernetes/whole-number.ts';
import { apiInMemory, MERGE, NODES, node } from '../support/api-in-memory.ts';

/** With the old patterns each needed more than a second. */
const MS_MAX = 300;
const zeros = '0'.repeat(60_000);
const parts = '000s'.repeat(17);

async function cpuMsOf(run: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await Promise.resolve()
    .then(run)
    .catch(() => {});
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

describe('a long text', () => {
  it.each<[string, () => unknown]>([
    ['a quantity', () => parseQuantity(`${zeros}!`)],
    ['a duration of Go', () => parseGoDuration(`${parts}!`)],
    ['the option timeout', () => checkTimeout(new URLSearchParams({ timeout: `${parts}!` }))],
    ['an int64', () => parseInt64(`${zeros}+`)],
    ['a resourceVersion', () => parseUint64(`${zeros}+`)],
    ['a schedule in a time zone', () => parseCron(`TZ=${'\t'.repeat(60_000)}\nx\n`)],
    ['a schedule of a duration', () => parseCron(`@every ${zeros}!`)],
    ['a time zone', () => isTimeZone(zeros)],
    ['a path of a role', () => coversPath(`${'*'.repeat(60_000)}x*`, '/healthz')],
    ['a header', () => acceptsGzip({ headers: { 'accept-encoding': `gzip;q=.${'1'.repeat(60_000)}!` } } as never)],
    ['a duration in an expression', () => parseDuration(`${parts}!`)],
    ['the format duration', () => FORMATS.get('duration')!(`${parts}!`)],
    ['the format duration, of microseconds', () => FORMATS.get('duration')!(`${'0\u03bcs'.repeat(26)}!`)],
  ])('%s is refused at once', async (_what, run) => {
    expect(await cpuMsOf(run)).toBeLessThan(MS_MAX);
  });

  it('is trimmed by an expression at once', async () => {
    const [trim] = celFunctions.get('.trim') ?? [];
    const text = `a${' '.repeat(60_000)}b`;
    let trimmed: unknown;
    const ms = await cpuMsOf(() => {
      trimmed = trim?.call(`\u00a0\t${text}\n `);
    });
    expect(trimmed).toBe(text);
    expect(ms).toBeLessThan(MS_MAX);
  });

  it('of a machine is, too: an amount in the status of its Node', async () => {
    const users = { machine: { name: 'system:node:n1', groups: ['system:nodes'] } };
    const api = apiInMemory({ users });
    await api.send('POST', NODES, { body: node('n1') });
    let code: number | undefined;
    const ms = await cpuMsOf(async () => {
      const answer = await api.send('PATCH', `${NODES}/n1/status`, {
        headers: { authorization: 'Bearer machine' },
        body: { status: { capacity: { cpu: `${zeros}!` } } },
        contentType: MERGE,
      });
      code = answer.code;
    });
    expect(code).toBe(422);
    expect(ms).toBeLessThan(MS_MAX);
  });
});
