/**
 * The Kubernetes API over TLS with objects in a map: the verbs, validation and printing as deployed, without store,
 * controllers, watch or bundles. Starts in milliseconds; what kubectl prints can be tried while the rest is being changed.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority, makeServerCertificate } from '../../local/access/certificate.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { fixedAnswers } from '../../shared/app/api/fixed.ts';
import { answerSelfReview } from '../../shared/app/api/self-review.ts';
import { serveApi } from '../../shared/app/api/serve.ts';
import type { ResourceStorage } from '../../shared/app/api/storage.ts';
import { createOpenApi, OPENAPI_V2 } from '../../shared/kube/openapi/openapi.ts';
import type { ResourceDescriptor } from '../../shared/kube/resources/descriptor.ts';
import { SYSTEM_NAMESPACES } from '../../shared/kube/resources/namespaces.ts';
import { findResource, namespaces, resources, storedAs } from '../../shared/kube/resources/registry.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { HttpResponse } from '../../shared/ports/http.ts';

export interface MemoryApi {
  readonly kubeconfig: string;
  /** What the API logged, mostly faults of ours. */
  readonly log: readonly string[];
  stop(): Promise<void>;
}

export async function startMemoryApi(): Promise<MemoryApi> {
  const log: string[] = [];
  const note = (message: string, fields?: Record<string, unknown>): void => {
    const error = fields?.['error'];
    log.push(`${message} ${error instanceof Error ? error.stack : ''} ${JSON.stringify(fields)}`);
  };
  const token = randomBytes(16).toString('hex');
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
  const openApi = createOpenApi({ resources, serverVersion: 'test', hash });
  const storageOf = memoryStorage();
  const serve = serveApi({
    authenticator: staticTokenAuthenticator([{ sha256: hash(token), user: 'admin', groups: ['system:masters'] }]),
    clock: systemClock,
    random: systemRandom,
    podEvictionTimeoutSeconds: 300,
    storageOf,
    log: { debug: note, info: note, warn: note, error: note },
    descriptorOf: findResource,
    fixed: fixedAnswers({ version: 'test' }, (path) => openApiAnswer(openApi, path)),
    virtual: answerSelfReview,
  });
  const nowMs = Date.now();
  for (const name of SYSTEM_NAMESPACES) {
    const metadata = { name, uid: systemRandom.uuid(), creationTimestamp: new Date(nowMs).toISOString() };
    const context = { nowMs, notReadyTolerationSeconds: 300, unreachableTolerationSeconds: 300 };
    await storageOf(namespaces).create(namespaces.prepareForCreate({ metadata }, context));
  }

  const authority = makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const certificate = makeServerCertificate(authority, { names: ['127.0.0.1', 'localhost'], nowMs, validDays: 1 });
  const server = createServer(
    { cert: certificate.certificatePem, key: certificate.privateKeyPem },
    (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', async () => {
        const [path = '/', query = ''] = (incoming.url ?? '/').split('?', 2);
        const headers = Object.fromEntries(
          Object.entries(incoming.headers).map(([name, value]) => [
            name,
            Array.isArray(value) ? value.join(',') : (value ?? ''),
          ]),
        );
        const answer = await serve({
          method: incoming.method ?? 'GET',
          path,
          query: new URLSearchParams(query),
          headers,
          body: Buffer.concat(chunks),
          sourceIp: '127.0.0.1',
        });
        outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      });
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  const dir = mkdtempSync(join(tmpdir(), 'nk-memory-'));
  const kubeconfig = join(dir, 'kubeconfig');
  const ca = Buffer.from(authority.certificatePem).toString('base64');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
      clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority-data': ca } }],
      users: [{ name: 'admin', user: { token } }],
    }),
  );
  return {
    kubeconfig,
    log,
    stop: () =>
      new Promise((resolve) => {
        rmSync(dir, { recursive: true });
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function openApiAnswer(openApi: ReturnType<typeof createOpenApi>, path: string): HttpResponse | undefined {
  if (path === '/openapi/v2') {
    return { status: 200, headers: { 'content-type': OPENAPI_V2.contentType }, body: OPENAPI_V2.body };
  }
  const rest = path.replace(/^\/openapi\/v3\/?/, '');
  const document = rest === '' ? openApi.index() : openApi.document(rest);
  return document === undefined
    ? undefined
    : { status: 200, headers: { 'content-type': 'application/json', etag: `"${document.hash}"` }, body: document.body };
}

/** One counter for all, as a cluster has; keys in order, as a store reads them. */
function memoryStorage(): (descriptor: ResourceDescriptor) => ResourceStorage {
  let version = 0;
  const tables = new Map<string, Map<string, KubeObject>>();
  const keyOf = ({ metadata }: KubeObject): string =>
    metadata.namespace === undefined ? (metadata.name ?? '') : `${metadata.namespace}/${metadata.name}`;

  return (descriptor) => {
    const stored = storedAs(descriptor);
    const name = `${stored.group}/${stored.resource}`;
    const table = tables.get(name) ?? new Map<string, KubeObject>();
    tables.set(name, table);
    const write = (object: KubeObject): { kind: 'written'; object: KubeObject } => {
      version += 1;
      const metadata = { ...object.metadata, resourceVersion: String(version) };
      const written = structuredClone({ ...object, metadata });
      table.set(keyOf(written), written);
      return { kind: 'written', object: structuredClone(written) };
    };
    const isCurrent = (old: KubeObject): boolean =>
      table.get(keyOf(old))?.metadata.resourceVersion === old.metadata.resourceVersion;
    return {
      get: async (namespace, objectName) =>
        // A namespace stands in its own path, also as the namespace.
        structuredClone(table.get(descriptor.namespaced ? `${namespace}/${objectName}` : objectName)),
      list: async ({ namespace, limit, continueAfter = '' }) => {
        const keys = [...table.keys()]
          .filter((key) => namespace === '' || key.startsWith(`${namespace}/`))
          .filter((key) => key > continueAfter)
          .sort();
        const page = keys.slice(0, limit);
        const items = page.map((key) => structuredClone(table.get(key)!));
        return keys.length > limit ? { items, next: page.at(-1)! } : { items };
      },
      listVersion: async () => String(version),
      create: async (object) => (table.has(keyOf(object)) ? { kind: 'conflict' } : write(object)),
      update: async (next, old) => (isCurrent(old) ? write(next) : { kind: 'conflict' }),
      remove: async (old) => {
        if (!isCurrent(old)) return { kind: 'conflict' };
        table.delete(keyOf(old));
        version += 1;
        return { kind: 'written', object: { ...old, metadata: { ...old.metadata, resourceVersion: String(version) } } };
      },
    };
  };
}
