/** The doctor on this machine, against an API of its own. */

import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort } from '../../shared/host/loopback.ts';
import { startTlsServer, type TlsServer } from '../../test/support/tls-server.ts';
import { loadConfig } from '../adapters/config/load-config.ts';
import { serveHealthz } from '../adapters/healthz/healthz-server.ts';
import { readRelayCertificate } from '../adapters/relay/certificate-files.ts';
import { serveRelay } from '../adapters/relay/relay-server.ts';
import { doctor } from './doctor.ts';
import { relayInit } from './relay-init.ts';

let directory: string;
let server: TlsServer;
let asked: string[];
/** Message of the Ready condition of the Node. */
let ready: string;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-doctor-'));
  asked = [];
  ready = 'kubelet is posting ready status';
  server = await startTlsServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization ?? 'no token'}`);
    const status = { conditions: [{ type: 'Ready', message: ready }] };
    const node = { kind: 'Node', metadata: { name: 'n1' }, status };
    const body = request.url === '/version' ? { gitVersion: 'v1.34.0' } : node;
    response.end(JSON.stringify(body));
  });
});
afterEach(async () => {
  await server.close();
  rmSync(directory, { recursive: true });
});

function configure(lines: string, endpoint = server.url): void {
  writeFileSync(join(directory, 'ca.pem'), server.certificateAuthority);
  writeFileSync(
    join(directory, 'agent.yaml'),
    `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
endpoint: "${endpoint}"
hostnameOverride: n1
rootDirectory: ${directory}/state
healthzPort: 0
${lines}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failSwapOn: false
`,
  );
}

async function run(...more: readonly string[]) {
  const printed: string[] = [];
  const code = await doctor(['--config', join(directory, 'agent.yaml'), ...more], {
    print: (text) => printed.push(text),
    loadConfig,
    environment: { DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${directory}/no-bus` },
    agentVersion: '0.1.0',
    nowMs: Date.now,
  });
  const lineOf = (check: string): string => printed.find((line) => line.slice(9).startsWith(check)) ?? '';
  return { code, printed, lineOf };
}

const CA = () => `certificateAuthorityFile: ${directory}/ca.pem`;

it('prints a line per check, asks with the token of the machine, and changes nothing', async () => {
  configure(`${CA()}\ntoken: secret`);
  mkdirSync(join(directory, 'state'));
  const { code, lineOf, printed } = await run();
  expect(code).toBe(0);
  expect(lineOf('configuration')).toBe('ok       configuration  node n1, runtime none');
  expect(lineOf('endpoint')).toMatch(/^ok {7}endpoint {7}https:\/\/127\.0\.0\.1:\d+ answered in \d+ ms$/);
  // The certificate of the test ends tomorrow.
  expect(lineOf('certificate')).toMatch(/^warning {2}certificate {4}trusted, ends in \d days\. Renew/);
  expect(lineOf('clock')).toMatch(/^ok .*within \d s/);
  expect(lineOf('token')).toBe('ok       token          accepted, Node n1 exists');
  expect(lineOf('versions')).toContain(`agent 0.1.0, Node.js ${process.version}, API v1.34.0`);
  expect(asked.toSorted()).toEqual(['/api/v1/nodes/n1 Bearer secret', '/version no token']);
  expect(readdirSync(join(directory, 'state'))).toEqual([]);
  expect(printed.join('\n')).not.toContain('secret');
});

it('fails, with the same findings as JSON, for an unknown authority and a directory that is missing', async () => {
  configure('token: secret');
  const { code, printed } = await run('--json');
  const { checks } = JSON.parse(printed.join('\n')) as { checks: { check: string; outcome: string; todo?: string }[] };
  expect(code).toBe(1);
  expect(checks.filter(({ outcome }) => outcome === 'failed').map(({ check }) => check)).toEqual([
    'certificate',
    'disk',
  ]);
  expect(checks.find(({ check }) => check === 'certificate')?.todo).toContain('certificateAuthorityFile');
});

it('does not enrol a machine, and finds a key that others may read', async () => {
  configure(`${CA()}\nbootstrapToken: abc.def`);
  mkdirSync(join(directory, 'state'));
  expect((await run()).lineOf('key')).toMatch(/^warning .*there is no key yet/);
  expect(asked).toEqual(['/version no token']);
  const key = join(directory, 'state/node-key.pem');
  writeFileSync(key, 'key');
  chmodSync(key, 0o644);
  const { code, lineOf } = await run();
  expect([code, lineOf('key')]).toEqual([1, expect.stringMatching(/^failed .*chmod 600/)]);
});

it('finds that nothing answers at the endpoint, and that logind is not there', async () => {
  const url = server.url;
  await server.close();
  configure(`${CA()}\ntoken: secret`, url);
  mkdirSync(join(directory, 'state'));
  const { code, lineOf } = await run('--root-dir', join(directory, 'state'));
  expect([code, lineOf('endpoint')]).toEqual([1, expect.stringMatching(/^failed .*ECONNREFUSED.*firewalls/)]);
  server = await startTlsServer(() => undefined);
});

describe('with a relay', () => {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });

  const init = (...names: readonly string[]) =>
    expect(relayInit(['init', '--directory', directory, '--name', names.join(',')], Date.now()).exitCode).toBe(0);
  const files = () => ({ certificateFile: `${directory}/relay.pem`, privateKeyFile: `${directory}/relay.key` });
  const forwarded: unknown[] = [];

  /** The relay of a running agent, on any free port. */
  async function serve(): Promise<number> {
    const relay = async (item: unknown) => {
      forwarded.push(item);
      return { status: 503, body: {} };
    };
    const server = await serveRelay({
      address: '127.0.0.1',
      port: 0,
      certificate: readRelayCertificate(files()),
      relay,
      site: () => ({ received() {}, closed() {} }),
    });
    closers.push(() => server.close());
    return server.port;
  }

  const relaySettings = (port: number, more = '') =>
    `${CA()}\nrelay:\n  address: 127.0.0.1\n  port: ${port}\n  certificateFile: ${directory}/relay.pem\n  privateKeyFile: ${directory}/relay.key${more}`;

  it('finds that the port of the relay is free, and that its certificate is for this machine', async () => {
    init('127.0.0.1');
    configure(relaySettings(await freePort()));
    const { lineOf } = await run();
    expect(lineOf('relay-port')).toMatch(/^ok .*127\.0\.0\.1, port \d+: can be listened on$/);
    expect(lineOf('relay-cert')).toMatch(/^ok .*fits its key, is for 127\.0\.0\.1, ends in 39\d days$/);
  });

  it('finds that the agent relays there, with its certificate or with an older one', async () => {
    init('127.0.0.1');
    const port = await serve();
    configure(relaySettings(port));
    expect((await run()).lineOf('relay-port')).toMatch(/^ok .*: the agent relays$/);
    init('127.0.0.1');
    expect((await run()).lineOf('relay-port')).toMatch(/^warning .*with another certificate/);
    expect(forwarded).toEqual([]);
  });

  it('finds that another program uses the port', async () => {
    init('127.0.0.1');
    configure(relaySettings(server.port));
    const { code, lineOf } = await run();
    expect([code, lineOf('relay-port')]).toEqual([1, expect.stringMatching(/^failed .*EADDRINUSE.*ss -ltnp/)]);
  });

  it('finds an address that is not of this machine, for the port and for the certificate', async () => {
    init('192.0.2.1');
    configure(relaySettings(await freePort()).replace('address: 127.0.0.1', 'address: 192.0.2.1'));
    const found = await run();
    expect(found.lineOf('relay-port')).toMatch(/^failed .*EADDRNOTAVAIL.*relay\.address/);
    configure(relaySettings(await freePort()));
    expect((await run()).lineOf('relay-cert')).toMatch(/^warning .*for 192\.0\.2\.1: none is .*\(127\.0\.0\.1\)/);
  });

  it('finds files that are missing, that are no certificate, and a key of another certificate', async () => {
    configure(relaySettings(await freePort()));
    expect((await run()).lineOf('relay-cert')).toMatch(/^failed .*ENOENT.*relay\.pem/);
    init('127.0.0.1');
    const key = readFileSync(`${directory}/relay.key`);
    init('127.0.0.1');
    writeFileSync(`${directory}/relay.key`, key);
    expect((await run()).lineOf('relay-cert')).toMatch(/^failed .*mismatch/);
    writeFileSync(`${directory}/relay.pem`, 'nothing');
    const { code, lineOf } = await run();
    expect([code, lineOf('relay-cert')]).toEqual([1, expect.stringMatching(/^failed .*relay\.pem is no certificate/)]);
  });

  it('finds that the relay of the site answers, and is trusted', async () => {
    init('127.0.0.1');
    const port = await serve();
    const heartbeats = `${CA()}\nheartbeatEndpoint: https://127.0.0.1:${port}`;
    configure(`${heartbeats}\nheartbeatCertificateAuthorityFile: ${directory}/site-ca.pem`);
    expect((await run()).lineOf('relay ')).toMatch(
      /^ok .* answered in \d+ ms, its certificate is trusted and ends in 39/,
    );
    // Without the site CA.
    configure(heartbeats);
    const { code, lineOf } = await run();
    expect([code, lineOf('relay ')]).toEqual([1, expect.stringMatching(/^failed .*site-ca\.pem/)]);
    expect(forwarded).toEqual([]);
  });

  it('finds that the site can probe this machine, and that it does not answer probes', async () => {
    init('127.0.0.1');
    const heartbeats = `${CA()}\nheartbeatEndpoint: https://127.0.0.1:${await serve()}`;
    const settings = `${heartbeats}\nheartbeatCertificateAuthorityFile: ${directory}/site-ca.pem\nwitness:`;
    configure(`${settings}\n  address: 127.0.0.1\n  port: ${await freePort()}`);
    expect((await run()).lineOf('witness')).toMatch(/^ok .*can be listened on, and the relay watches the site$/);
    configure(`${settings}\n  address: 127.0.0.1\n  port: ${server.port}`);
    expect((await run()).lineOf('witness')).toMatch(/^failed .*EADDRINUSE/);
    configure(`${settings}\n  enabled: false`);
    expect((await run()).lineOf('witness')).toMatch(/^ok .*off/);
  });

  it('finds that the relay of the site does not answer, or is something else', async () => {
    const site = `${CA()}\nheartbeatCertificateAuthorityFile: ${directory}/ca.pem`;
    configure(`${site}\nheartbeatEndpoint: https://127.0.0.1:${await freePort()}`);
    expect((await run()).lineOf('relay ')).toMatch(/^warning .*ECONNREFUSED.*sent directly\. Check host and port/);
    configure(`${site}\nheartbeatEndpoint: ${server.url}`);
    expect((await run()).lineOf('relay ')).toMatch(/^failed .*is no relay: it answered 200/);
  });
});

it('finds what the machine would start without a network, and the complaint of the running agent', async () => {
  const complaint = 'the pods of this machine cannot be remembered: ENOSPC';
  ready = `kubelet is posting ready status. WARNING: ${complaint}`;
  const agent = await serveHealthz({ port: 0, checks: [], metrics: () => '' });
  const settings = `${CA()}\ntoken: secret\nruntime: exec`;
  configure(settings);
  mkdirSync(join(directory, 'state'));
  const { code, lineOf } = await run('--healthz-port', String(agent.port));
  expect([code, lineOf('remembered')]).toEqual([1, expect.stringContaining(complaint)]);
  expect(lineOf('offline-images')).toBe('');
  // Without an agent, the condition is an old one.
  await agent.close();
  expect((await run('--healthz-port', String(agent.port))).lineOf('remembered')).toMatch(/^ok .*no pods yet/);
});

it('reports the faults of a configuration, each with its line', async () => {
  configure('runtime: docker\nendpoints: x');
  const { code, printed } = await run();
  expect(code).toBe(1);
  expect(printed).toEqual([
    expect.stringMatching(/^failed {3}configuration {2}.*agent\.yaml:\d+: endpoints: no field of AgentConfiguration/),
    expect.stringMatching(/^failed {3}configuration {2}.*agent\.yaml:\d+: runtime "docker": expected one of/),
  ]);
});
