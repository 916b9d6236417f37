import { expect, it } from 'vitest';
import { ProgramError, runProgram } from './run-program.ts';

const BOUNDS = { timeoutMs: 60_000, outputBytesMax: 1_000 };
/** A shell in place of a program. */
const run = (script: string, bounds: Partial<typeof BOUNDS> = {}, input?: string) =>
  runProgram('/bin/sh', ['-c', script, 'sh', 'x'], { ...BOUNDS, ...bounds }, input);

it('a program that exits with 0 has its output, of its arguments and its input', async () => {
  expect(await run('echo "$1"; cat', {}, 'read')).toBe('x\nread');
  expect(await run('cat')).toBe('');
});

it.each([
  ['echo " a fault " >&2; exit 3', 3, /^a fault$/],
  ['echo; exit 3', 3, /^Command failed: .*sh/],
  ['kill -TERM $$', undefined, /^Command failed/],
])('a program that runs %j fails with %s', async (script, code, message) => {
  const fault = await run(script).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(ProgramError);
  expect(fault).toMatchObject({ code, message: expect.stringMatching(message), cause: expect.any(Error) });
});

it('a program that is not there fails', async () => {
  await expect(runProgram('/nonexistent/program', [], BOUNDS)).rejects.toMatchObject({
    code: 'ENOENT',
    message: 'spawn /nonexistent/program ENOENT',
  });
});

it('a program is killed at its time limit, also if it ignores SIGTERM', async () => {
  await expect(run('trap "" TERM; echo wait >&2; exec sleep 600', { timeoutMs: 50 })).rejects.toMatchObject({
    code: undefined,
    message: 'did not end within 0.05 s',
    cause: { signal: 'SIGKILL' },
  });
});

it('a program is killed if it prints too much', async () => {
  expect(await run('printf %05d 0', { outputBytesMax: 5 })).toBe('00000');
  await expect(run('printf %06d 0; exec sleep 600', { outputBytesMax: 5 })).rejects.toMatchObject({
    code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER',
    message: 'stdout maxBuffer length exceeded',
  });
});

it('a program that does not read its input fails by its exit alone', async () => {
  await expect(run('exec 0<&-; echo full >&2; exit 1', {}, 'x'.repeat(1_000_000))).rejects.toThrow('full');
});
