/** The agent as a process that cannot start: it exits, and names the reason once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('nodekeeper-agent.ts', import.meta.url));
/** Longer than a start on a busy machine. Milliseconds. */
const EXIT_WITHIN_MS = 30_000;

describe('an agent that cannot start', { timeout: 2 * EXIT_WITHIN_MS }, () => {
  let directory: string;
  let child: ChildProcess | undefined;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-start-'));
  });
  afterEach(() => {
    child?.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  });

  function start(rootDirectory: string, ...more: readonly string[]) {
    // Nothing answers there: an agent that started would try for ever.
    const args = ['--endpoint', 'https://127.0.0.1:9', '--fail-swap-on=false', '--healthz-port', '0'];
    const started = spawn(process.execPath, [PROGRAM, ...args, '--root-dir', rootDirectory, ...more], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child = started;
    let errors = '';
    started.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    return {
      process: started,
      exitCode: async (): Promise<number | null> =>
        (await once(started, 'close', { signal: AbortSignal.timeout(EXIT_WITHIN_MS) }))[0],
      /** What is not the log. */
      lines: () => errors.split('\n').filter((line) => line !== '' && !line.startsWith('{')),
    };
  }

  it('because of its rootDirectory exits with one line', async () => {
    const agent = start('/proc/nope', '--token', 't');
    expect(await agent.exitCode()).toBe(1);
    expect(agent.lines()).toEqual([
      expect.stringMatching(/^nodekeeper-agent: rootDirectory \/proc\/nope cannot be made: ENOENT/),
    ]);
  });

  it('obeys SIGTERM meanwhile', async () => {
    const agent = start('/proc/nope', '--token', 't');
    await once(agent.process.stderr, 'data', { signal: AbortSignal.timeout(EXIT_WITHIN_MS) });
    agent.process.kill('SIGTERM');
    // By then it may have exited for its own reason.
    expect([0, 1]).toContain(await agent.exitCode());
  });

  it.each([
    ['is no key', 0o600, /not a private key: .*node-key\.pem/],
    ['others may read', 0o644, /others may read the key of this machine; chmod 600 .*node-key\.pem, or remove it/],
  ])('because its key %s exits with one line', async (_why, mode, reason) => {
    const key = join(directory, 'node-key.pem');
    writeFileSync(key, 'no key');
    chmodSync(key, mode);
    const token = join(directory, 'token');
    writeFileSync(token, 'abc.secret');
    const agent = start(directory, '--bootstrap-token-file', token);
    expect(await agent.exitCode()).toBe(1);
    expect(agent.lines()).toEqual([expect.stringMatching(reason)]);
  });
});
