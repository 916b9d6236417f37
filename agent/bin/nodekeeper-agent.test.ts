/** The agent as a process that cannot start, or not all of it: it names the reason once. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { until } from '../../test/support/until.ts';
import { makeRelayCertificate, makeSiteAuthority } from '../adapters/relay/certificates.ts';

const PROGRAM = fileURLToPath(new URL('nodekeeper-agent.ts', import.meta.url));
/** Longer than a start on a busy machine. Milliseconds. */
const EXIT_WITHIN_MS = 30_000;

/** A port of loopback that another server uses until it is released. */
async function takePort() {
  const other = createServer();
  const port = await listenOnLoopback(other);
  return { port, release: () => new Promise((resolve) => other.close(resolve)) };
}

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
    const args = ['--endpoint', 'https://127.0.0.1:9', '--fail-swap-on=false'];
    if (!more.includes('--healthz-port')) args.push('--healthz-port', '0');
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
      log: () => errors,
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

  it('as a relay, because its port is in use, continues, and listens when the port is free', async () => {
    const authority = makeSiteAuthority({ commonName: 'site', nowMs: Date.now(), validDays: 1 });
    const certificate = makeRelayCertificate(authority, { names: ['127.0.0.1'], nowMs: Date.now(), validDays: 1 });
    const at = (name: string): string => join(directory, name);
    writeFileSync(at('relay.pem'), certificate.certificatePem);
    writeFileSync(at('relay.key'), certificate.privateKeyPem);
    const { port, release } = await takePort();
    const relay = { address: '127.0.0.1', port, certificateFile: at('relay.pem'), privateKeyFile: at('relay.key') };
    const document = { apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'AgentConfiguration', relay };
    writeFileSync(at('agent.yaml'), JSON.stringify(document));
    const agent = start(at('state'), '--token', 't', '--config', at('agent.yaml'));
    const logs = (text: string) => async () => agent.log().includes(text);
    const waiting = { withinMs: EXIT_WITHIN_MS, everyMs: 50 };
    await until(logs('the relay cannot listen; it is tried again'), { ...waiting, what: 'the fault of the relay' });
    expect(agent.log()).toMatch(new RegExp(`"port":${port},"why":"listen EADDRINUSE`));
    // Nothing answers it, but it sends heartbeats.
    await until(logs('the Lease could be neither read nor created'), { ...waiting, what: 'a heartbeat' });
    await release();
    await until(logs('the relay listens'), { ...waiting, what: 'the relay' });
    await until(logs('the certificate of the relay expires soon'), { ...waiting, what: 'the warning' });
    agent.process.kill('SIGTERM');
    expect(await agent.exitCode()).toBe(0);
  });

  it('with its port of /healthz in use continues, and serves it when the port is free', async () => {
    const { port, release } = await takePort();
    const agent = start(join(directory, 'state'), '--token', 't', '--healthz-port', String(port));
    const logs = (text: string) => async () => agent.log().includes(text);
    const waiting = { withinMs: EXIT_WITHIN_MS, everyMs: 50 };
    await until(logs('/healthz cannot be served; it is tried again'), { ...waiting, what: 'the fault' });
    expect(agent.log()).toMatch(new RegExp(`"port":${port},"why":"listen EADDRINUSE`));
    await until(logs('the Lease could be neither read nor created'), { ...waiting, what: 'a heartbeat' });
    await release();
    await until(logs('/healthz is served'), { ...waiting, what: 'the server' });
    expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toContain('kubelet_node_name');
    agent.process.kill('SIGTERM');
    expect(await agent.exitCode()).toBe(0);
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
