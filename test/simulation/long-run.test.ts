/** Long runs of `npm run sim -- --long`, in small, and the bugs that their laws must find. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ItemStore, Write } from '../../shared/store/item-store.ts';
import { simLong } from '../../simulation/long-run/long.ts';
import { LONG_FAULTS, type LongOptions, longFaultsOf, runLong } from '../../simulation/long-run/run-long.ts';

const SMALL = { seed: 3, nodes: 200, hours: 2 } as const;
/** A run needs a second or two of CPU, on a machine that may be busy. */
const TIMEOUT_MS = 240_000;

describe('a long run', { timeout: TIMEOUT_MS }, () => {
  it('keeps the laws under all faults together, and evaluates every node in every tick', async () => {
    const result = await runLong(SMALL);
    const { falseMarks, lateMarks, chainFaults } = result;
    expect({ falseMarks, lateMarks, chainFaults }).toEqual({ falseMarks: 0, lateMarks: 0, chainFaults: 0 });
    expect(result.rightMarks).toBeGreaterThan(5);
    // The run is relevant: ticks were lost, and the gate closed.
    expect(result.ticks).toBeLessThan(1_400);
    expect(result.ticksWithClosedGate).toBeGreaterThan(0);
    expect(result.evaluations).toBeGreaterThanOrEqual(result.ticks * SMALL.nodes);
    const injected = Object.values(result.together).filter((figures) => figures.injected > 0);
    expect(injected.length).toBeGreaterThan(LONG_FAULTS.length / 2);
  });

  it('keeps the laws without faults: no message is lost, and each mark is in time', async () => {
    const result = await runLong({ ...SMALL, faults: [] });
    expect(result).toMatchObject({ ticks: 1_440, messages: 1_440, claims: 1_440, ticksWithClosedGate: 0, failures: 0 });
    expect(result).toMatchObject({ falseMarks: 0, lateMarks: 0, chainFaults: 0 });
    const seconds = Object.keys(result.calmDetection).map(Number);
    expect(seconds.length).toBeGreaterThan(5);
    expect(Math.min(...seconds)).toBeGreaterThanOrEqual(40);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(45.5);
  });

  it('has each fault alone in one of its even seeds', () => {
    const alone = new Set(Array.from({ length: LONG_FAULTS.length }, (_, index) => longFaultsOf(2 * index + 2)[0]));
    expect([...alone].toSorted()).toEqual([...LONG_FAULTS].toSorted());
    expect(longFaultsOf(7)).toEqual(LONG_FAULTS);
  });

  it('measures a fault alone: chain messages that are lost delay marks until the watchdog has restarted it', async () => {
    const { alone, falseMarks, lateMarks } = await runLong({ ...SMALL, faults: ['lostTicks'] });
    expect({ falseMarks, lateMarks }).toEqual({ falseMarks: 0, lateMarks: 0 });
    const { episodes, injected, recovery } = alone.lostTicks!;
    expect(episodes).toBeGreaterThan(10);
    expect(injected).toBeGreaterThan(10);
    const seconds = Object.keys(recovery).map(Number);
    expect(Math.max(...seconds)).toBeGreaterThan(20);
    // Two minutes until the watchdog, and a tick that opens the gate.
    expect(Math.max(...seconds)).toBeLessThan(130);
  });
});

describe('a long run of sites with witnesses', { timeout: TIMEOUT_MS }, () => {
  const SITES = { ...SMALL, fleet: 'sites' } as const;

  it('keeps the laws under all faults and troubles of sites, and shortens the wait for machines without power', async () => {
    const result = await runLong(SITES);
    expect(result).toMatchObject({ falseMarks: 0, lateMarks: 0, chainFaults: 0 });
    expect(result.marksShortened).toBeGreaterThan(3);
  });

  it('marks each machine in its own time without faults of ours, also when a relay and a second machine lie', async () => {
    const result = await runLong({ ...SITES, hours: 1, faults: [], troubles: ['lyingPair'] });
    expect(result).toMatchObject({ falseMarks: 0, lateMarks: 0, marksShortenedOfSenders: 0 });
    const seconds = Object.keys(result.calmDetection).map(Number);
    expect(Math.min(...seconds)).toBeGreaterThanOrEqual(14);
    expect(Math.max(...seconds)).toBeLessThanOrEqual(45.5);
  });

  it('finds a floor that is shorter than the interval of the machines', async () => {
    const plant = { policy: { beatIntervalSeconds: 5 } };
    const until: LongOptions['until'] = (current) => current.falseMarks > 0;
    const { falseMarks } = await runLong({ ...SITES, hours: 1, faults: [], troubles: ['lyingPair'], plant, until });
    expect(falseMarks).toBeGreaterThan(0);
  });
});

describe('a planted bug is found', { timeout: TIMEOUT_MS }, () => {
  const isClaim = (write: Write): boolean =>
    write.kind === 'update' && write.key.sk === 'state' && write.set?.['slot'] !== undefined;
  /** A claim that was refused counts as successful. */
  const unsettled = (items: ItemStore): ItemStore => ({
    ...items,
    write: async (write, options) => {
      const outcome = await items.write(write, options);
      return isClaim(write) ? { kind: 'written' } : outcome;
    },
  });

  it.each<
    [
      string,
      Pick<LongOptions, 'faults' | 'plant'> & { readonly seed?: number },
      'falseMarks' | 'lateMarks' | 'chainFaults',
    ]
  >([
    [
      'a grace period of the rule that is too short',
      { faults: [], plant: { policy: { nodeMonitorGracePeriodSeconds: 15 } } },
      'falseMarks',
    ],
    [
      'a grace period of the rule that is too long',
      { faults: [], plant: { policy: { nodeMonitorGracePeriodSeconds: 50 } } },
      'lateMarks',
    ],
    [
      'a gate that stays open while the heartbeat path fails',
      { faults: ['apiOutage'], plant: { policy: { ingestGate: 'off' } } },
      'falseMarks',
    ],
    [
      'a claim that does not settle a slot',
      // A seed in which two ticks try one slot.
      { seed: 2, faults: ['twice', 'atOnce'], plant: { items: unsettled } },
      'chainFaults',
    ],
  ])('%s', async (_, planted, law) => {
    const result = await runLong({ ...SMALL, ...planted, until: (current) => current[law] > 0 });
    expect(result[law]).toBeGreaterThan(0);
  });
});

describe('npm run sim -- --long', { timeout: TIMEOUT_MS }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'long-run-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  async function output(...args: string[]): Promise<{ code: number; lines: string[]; errors: string[] }> {
    const [lines, errors]: [string[], string[]] = [[], []];
    const code = await simLong(['--long', ...args], {
      print: (line) => lines.push(line),
      printError: (line) => errors.push(line),
    });
    return { code, lines, errors };
  }
  const withoutCpu = (lines: readonly string[]): string[] => lines.map((line) => line.replace(/, \d+ s of CPU/, ''));

  it('prints the sum of its seeds, also from parts that ran apart', async () => {
    const size = ['--nodes', '100', '--hours', '1'];
    const whole = await output('--seeds', '3..4', ...size);
    expect(whole.code).toBe(0);
    expect(whole.lines[0]).toMatch(/^2 runs, 200 node-hours, \d+ ticks, \d+ evaluations of a node, \d+ s of CPU$/);
    const files = [3, 4].map((seed) => join(folder, `${seed}.jsonl`));
    for (const [index, seed] of ['3', '4'].entries()) {
      const { lines } = await output('--seeds', seed, '--json', ...size);
      writeFileSync(files[index]!, `${lines.join('\n')}\n`);
    }
    expect(withoutCpu((await output('--sum', files.join(','))).lines)).toEqual(withoutCpu(whole.lines));
    await expect(output('--sum', `${files[0]},${files[0]}`)).rejects.toThrow('seed 3 is in two results');
  });

  it('prints a line per profile of a mixed fleet', async () => {
    const { code, lines } = await output('--fleet', 'mixed', '--seeds', '2..3', '--nodes', '60', '--hours', '1');
    expect(code).toBe(0);
    const rows = lines.filter((line) => /^\| (default|solar|fast) /.test(line)).map((line) => line.split(' | '));
    expect(rows.map(([kind]) => kind)).toEqual(['| default', '| solar', '| fast']);
    expect(rows.reduce((sum, [, hours]) => sum + Number(hours), 0)).toBeCloseTo(120, -1);
    expect(rows.map(([, , falseMarks]) => falseMarks)).toEqual(['0', '0', '0']);
  });

  it.each([
    [['--seeds', '4..3'], '--seeds must be A..B with A <= B, not 4..3'],
    [['--nodes', '5'], '--nodes must be a whole number from 10 to 50000, not 5'],
    [['--hours', 'x'], '--hours must be a whole number from 1 to 1000, not x'],
    [['--fleet', 'large'], '--fleet must be alike, mixed or sites, not large'],
    [['--faults', 'poison'], 'no such fault of a long run: poison; valid names: '],
  ])('refuses %j', async (args, message) => {
    const { code, errors } = await output(...args);
    expect(code).toBe(2);
    expect(errors[0]).toContain(message);
  });
});
