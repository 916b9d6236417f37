import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { type MoveIo, moveCommand } from './move-command.ts';
import { openArrival } from './open-arrival.ts';

const clock = { nowMs: Date.now };
let directory: string;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'nk-move-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const data = join(directory, 'a', 'data');
  mkdirSync(data, { recursive: true });
  const store = openSqliteStore({ file: join(data, 'nodekeeper.db'), clock, synchronous: 'normal' });
  await store.items.write({ kind: 'put', key: { table: 'objects', pk: 'p', sk: 's' }, item: { a: 1 } });
  await store.close();
});

async function move(args: readonly string[], onStep: MoveIo['onStep'] = () => {}) {
  const lines: string[] = [];
  const errors: string[] = [];
  const io = { print: (line: string) => lines.push(line), printError: (line: string) => errors.push(line), onStep };
  const exitCode = await moveCommand(args, io);
  return { exitCode, output: (exitCode === 0 ? lines : errors).join('\n') };
}
const between = (from: string, to: string) => ['--from', join(directory, from), '--to', join(directory, to)];

it.each(['fenced', 'copied', 'ready'])(
  'one command at a time moves a file: after the step %s no other one does',
  async (at) => {
    const others: ReturnType<typeof move>[] = [];
    const moved = await move(between('a', 'b'), (step) => {
      if (step === at) others.push(move([...between('a', 'b'), '--abandon']), move(between('a', 'c')));
    });
    expect(moved).toMatchObject({ exitCode: 0 });
    const refused = { exitCode: 1, output: expect.stringContaining(`process ${process.pid} moves ${directory}`) };
    expect(await Promise.all(others)).toEqual([refused, refused]);
    // The lock ends with its command.
    expect(await move([...between('a', 'b'), '--abandon'])).toMatchObject({ exitCode: 0 });
  },
);

it('a copy that was not started is not moved on', async () => {
  await move(between('a', 'b'));
  expect(await move(between('b', 'c'))).toEqual({
    exitCode: 1,
    output: expect.stringContaining('was never started: it is no cluster'),
  });
  const store = openSqliteStore({ file: join(directory, 'b', 'data', 'nodekeeper.db'), clock, synchronous: 'normal' });
  await openArrival(store, 'b');
  await store.close();
  expect(await move(between('b', 'd'))).toMatchObject({ exitCode: 0 });
});
