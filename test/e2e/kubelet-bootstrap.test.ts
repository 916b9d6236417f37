/**
 * A stock kubelet joins `nodekeeper serve` by its bootstrap kubeconfig alone: the requests of k8s.io/kubernetes
 * pkg/kubelet/certificate/bootstrap and k8s.io/client-go/util/certificate, over the wire. And people with kubectl.
 */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MadeRequest, makeRequest } from '../support/certificate-request.ts';
import { findKubectls, runKubectl } from '../support/kubectl.ts';
import { type LocalForTest, startLocalForTest } from '../support/local.ts';
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
const USAGES = ['digital signature', 'client auth'];

type Credential = { readonly token: string } | { readonly cert: string; readonly key: string };
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
type Answer = { readonly code: number; readonly body: any };

describe('certificates of nodekeeper serve', { timeout: 120_000 }, () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'nk-'));
  let local: LocalForTest;
  beforeAll(async () => {
    local = await startLocalForTest({ nodes: 0, dataDir });
  }, 90_000);
  afterAll(async () => {
    await local?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const open = (by: Credential, method: string, path: string, body?: unknown) => {
    const { url, ca } = local.access;
    const { token, ...certificate } = 'token' in by ? by : { token: undefined, ...by };
    const request = httpsRequest(`${url}${path}`, {
      method,
      ca,
      agent: false,
      ...certificate,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      },
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));
    return request;
  };

  const send = (by: Credential, method: string, path: string, body?: unknown): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const request = open(by, method, path, body);
      request.once('response', (answer) =>
        json(answer).then((parsed) => resolve({ code: answer.statusCode ?? 0, body: parsed }), reject),
      );
      request.once('error', reject);
    });

  async function bootstrapToken(...args: readonly string[]): Promise<Credential> {
    const command = [join(ROOT, 'cli/bin/nodekeeper.ts'), 'bootstrap-token', 'create', ...args];
    const { stdout } = await promisify(execFile)(process.execPath, [...command, '--kubeconfig', local.kubeconfig], {
      cwd: ROOT,
    });
    return { token: stdout.trim() };
  }

  /** The certificate of a request, from a watch of this request alone. */
  const issued = (by: Credential, name: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const request = open(by, 'GET', `${REQUESTS}?watch=1&timeoutSeconds=30&fieldSelector=metadata.name%3D${name}`);
      request.on('error', reject);
      request.once('response', (answer) => {
        let rest = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          const lines = `${rest}${chunk}`.split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines.filter((each) => each.trim() !== '')) {
            const certificate: string | undefined = JSON.parse(line).object.status?.certificate;
            if (certificate === undefined) continue;
            resolve(Buffer.from(certificate, 'base64').toString());
            request.destroy();
          }
        });
        answer.once('end', () => reject(new Error(`${name} was not signed`)));
        // Also of the end that we make.
        answer.on('error', reject);
      });
    });

  const csr = (name: string, { request }: MadeRequest, more: object = {}) => ({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: { request, signerName: SIGNER, usages: USAGES, ...more },
  });
  const ofNode = (name: string): Promise<MadeRequest> =>
    makeRequest({ commonName: `system:node:${name}`, organizations: ['system:nodes'] });

  /** A machine with its client certificate. */
  async function joined(name: string): Promise<{ readonly made: MadeRequest; readonly by: Credential }> {
    const token = await bootstrapToken();
    const made = await ofNode(name);
    expect((await send(token, 'POST', REQUESTS, csr(`node-csr-${name}`, made))).code).toBe(201);
    return { made, by: { cert: await issued(token, `node-csr-${name}`), key: made.privateKeyPem } };
  }

  it('a kubelet joins, renews its Lease, is limited to its own objects, and rotates its certificate', async () => {
    const { made, by } = await joined('k1');
    const certificate = new X509Certificate('cert' in by ? by.cert : '');
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:k1');
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(certificate.ca).toBe(false);
    expect((await send(by, 'POST', '/api/v1/nodes', { metadata: { name: 'k1' } })).code).toBe(201);
    const lease = { metadata: { name: 'k1' }, spec: { holderIdentity: 'k1', leaseDurationSeconds: 40 } };
    expect((await send(by, 'POST', LEASES, lease)).code).toBe(201);
    expect((await send(by, 'PATCH', `${LEASES}/k1`, { spec: { leaseDurationSeconds: 40 } })).code).toBe(200);
    expect((await send(by, 'POST', '/api/v1/nodes', { metadata: { name: 'k2' } })).code).toBe(403);
    expect((await send(by, 'PATCH', `${LEASES}/k2`, { spec: { leaseDurationSeconds: 40 } })).code).toBe(403);
    expect((await send(by, 'GET', '/api/v1/secrets')).code).toBe(403);
    // The request of the same key again: a kubelet that restarted. Of another: its rotation.
    const again = await send(by, 'POST', REQUESTS, csr('k1-again', made));
    expect(again.body.spec).toMatchObject({
      username: 'system:node:k1',
      groups: ['system:nodes', 'system:authenticated'],
    });
    const next = await ofNode('k1');
    expect((await send(by, 'POST', REQUESTS, csr('k1-next', next, { expirationSeconds: 600 }))).code).toBe(201);
    const rotated = { cert: await issued(by, 'k1-next'), key: next.privateKeyPem };
    expect((await send(rotated, 'PATCH', `${LEASES}/k1`, { spec: { leaseDurationSeconds: 40 } })).code).toBe(200);
    const validMs = new X509Certificate(rotated.cert).validToDate.getTime() - Date.now();
    expect(validMs).toBeGreaterThan(500_000);
    expect(validMs).toBeLessThanOrEqual(600_000);
  });

  it('a certificate signs in after a restart, and not after its machine was removed', async () => {
    const { by } = await joined('k3');
    expect((await send(by, 'POST', '/api/v1/nodes', { metadata: { name: 'k3' } })).code).toBe(201);
    await local.kill();
    local = await startLocalForTest({ nodes: 0, dataDir });
    expect((await send(by, 'GET', '/api/v1/nodes/k3')).code).toBe(200);
    const admin = { token: local.access.token };
    expect((await send(admin, 'DELETE', '/apis/nodekeeper.dev/v1alpha1/nodeidentities/k3')).code).toBe(200);
    await local.stop();
    local = await startLocalForTest({ nodes: 0, dataDir });
    expect((await send(by, 'GET', '/api/v1/nodes/k3')).code).toBe(401);
  });

  it('a token for one machine enrols no other, and a second machine of a name waits for a person', async () => {
    const token = await bootstrapToken('--nodes', 'edge-*', '--uses', '2');
    expect((await send(token, 'POST', REQUESTS, csr('core', await ofNode('core-1')))).code).toBe(403);
    const first = await ofNode('edge-1');
    await send(token, 'POST', REQUESTS, csr('edge-first', first));
    await issued(token, 'edge-first');
    expect((await send(token, 'POST', REQUESTS, csr('edge-second', await ofNode('edge-1')))).code).toBe(403);
  });

  it.each(findKubectls().map((each) => [each.name, each] as const))(
    '%s shows, approves and denies',
    async (name, kubectl) => {
      const run = (...args: readonly string[]) => runKubectl(kubectl, args, { kubeconfig: local.kubeconfig });
      const user = `ada-${name.replaceAll('.', '-')}`;
      const made = await makeRequest({ commonName: user, organizations: ['dev'] });
      for (const each of [user, `${user}-denied`]) {
        const signerName = 'kubernetes.io/kube-apiserver-client';
        const object = csr(each, made, { signerName, usages: ['client auth'], expirationSeconds: 3_600 });
        const options = { kubeconfig: local.kubeconfig, stdin: JSON.stringify(object) };
        expect((await runKubectl(kubectl, ['create', '-f', '-'], options)).stdout).toContain(`/${each} created\n`);
      }
      const row = async (of: string) => (await run('get', 'csr', of)).stdout;
      expect(await row(user)).toMatch(
        new RegExp(
          `^NAME +AGE +SIGNERNAME +REQUESTOR +REQUESTEDDURATION +CONDITION\n${user} +\\d+s +kubernetes.io/kube-apiserver-client +admin +60m +Pending\n$`,
        ),
      );
      expect((await run('certificate', 'approve', user)).stdout).toContain(`/${user} approved\n`);
      expect((await run('certificate', 'deny', `${user}-denied`)).stdout).toContain(`/${user}-denied denied\n`);
      await until(async () => ((await row(user)).includes('Approved,Issued') ? true : undefined), {
        withinMs: 30_000,
        what: 'an issued certificate',
      });
      expect(await row(`${user}-denied`)).toMatch(/ Denied\n$/);
      const described = await run('describe', 'csr', user);
      expect(described.stdout).toMatch(/Requesting User: +admin\n/);
      expect(described.stdout).toMatch(/Status: +Approved,Issued\n/);
      const { stdout } = await run('get', 'csr', user, '-o', 'jsonpath={.status.certificate}');
      const by = { cert: Buffer.from(stdout, 'base64').toString(), key: made.privateKeyPem };
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
      const whoami = await send(by, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', review);
      expect(whoami.body.status.userInfo).toMatchObject({ username: user, groups: ['dev', 'system:authenticated'] });
    },
  );
});
