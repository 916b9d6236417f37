/** The doctor on this machine, against an API of its own. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startTlsServer, type TlsServer } from '../../test/support/tls-server.ts';
import { loadConfig } from '../adapters/config/load-config.ts';
import { doctor } from './doctor.ts';

let directory: string;
let server: TlsServer;
let asked: string[];
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'nodekeeper-doctor-'));
  asked = [];
  server = await startTlsServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization ?? 'no token'}`);
    const body = request.url === '/version' ? { gitVersion: 'v1.34.0' } : { kind: 'Node', metadata: { name: 'n1' } };
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

it('reports the faults of a configuration, each with its line', async () => {
  configure('runtime: docker\nendpoints: x');
  const { code, printed } = await run();
  expect(code).toBe(1);
  expect(printed).toEqual([
    expect.stringMatching(/^failed {3}configuration {2}.*agent\.yaml:\d+: endpoints: no field of AgentConfiguration/),
    expect.stringMatching(/^failed {3}configuration {2}.*agent\.yaml:\d+: runtime "docker": expected one of/),
  ]);
});
