import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { runningCommand } from './running-command.ts';

async function text(output: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of output) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

const started = (file: string, args: readonly string[] = [], stdio: 'pipe' | 'ignore' = 'pipe') =>
  runningCommand(spawn(file, args, { stdio, detached: true }), { mark: 'none', tty: false });

it.each([
  ['exit 3', 3],
  ['kill -KILL $$', 137],
  ['kill -TERM $$', 143],
])('the command %j ends with %i', async (script, code) => {
  expect(await started('/bin/sh', ['-c', script]).exitCode).toBe(code);
});

it('a program that cannot be started is a fault, also if no caller follows it', async () => {
  started('/nonexistent');
  await expect(started('/nonexistent').exitCode).rejects.toThrow('ENOENT');
});

it('what is written arrives, until its end', async () => {
  const command = started('/bin/cat');
  await command.write(Buffer.from('a'));
  await command.write(Buffer.from('b'));
  command.endInput();
  expect(await text(command.stdout)).toBe('ab');
  expect(await command.exitCode).toBe(0);
});

it('without streams there is no output, and nothing to write to', async () => {
  const command = started('/bin/cat', [], 'ignore');
  await command.write(Buffer.from('a'));
  command.endInput();
  expect([await text(command.stdout), await text(command.stderr), await command.exitCode]).toEqual(['', '', 0]);
});
