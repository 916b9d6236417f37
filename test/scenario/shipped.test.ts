import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runSimulate } from './terminal.ts';

const folder = fileURLToPath(new URL('../../scenarios/', import.meta.url));
const files = globSync('*.yaml', { cwd: folder }).sort();
/**
 * On the engine as well: taints, timers and returns; a queue that loses nodes; what follows from EC2's word; a
 * removal with a condition on the heartbeats.
 */
const ON_THE_ENGINE = [
  'one-zone-dark.yaml',
  'node-deleted-while-queued.yaml',
  'vanished-vms.yaml',
  'automatic-out-of-service.yaml',
  'pod-that-must-not-run-twice.yaml',
];
describe('the scenarios that come with the project', () => {
  it('are at least ten', () => {
    expect(files.length).toBeGreaterThanOrEqual(10);
  });

  it.each(files)('%s holds', async (file) => {
    const { exitCode, errors } = await runSimulate(`${folder}${file}`, '--quiet');
    expect(errors).toEqual([]);
    expect(exitCode).toBe(0);
  });

  // In memory all of them hold: decisions.test.ts.
  it('hold on the embedded engine, too', async () => {
    const paths = ON_THE_ENGINE.map((file) => `${folder}${file}`);
    const { exitCode, errors, output } = await runSimulate(...paths, '--json', '--store', 'engine');
    expect(errors).toEqual([]);
    expect(exitCode).toBe(0);
    const results = output.map((line) => JSON.parse(line)).filter(({ kind }) => kind === 'result');
    expect(results).toMatchObject(ON_THE_ENGINE.map(() => ({ holds: true })));
  }, 120_000);

  it('print the same timeline with every store and on every run', async () => {
    const path = `${folder}one-zone-dark.yaml`;
    const timeline = async (...args: string[]) => (await runSimulate(path, '--json', ...args)).output.slice(0, -1);
    const told = await timeline();
    expect(told.length).toBeGreaterThan(30);
    expect(await timeline()).toEqual(told);
    expect(await timeline('--store', 'memory')).toEqual(told);
  });
});
