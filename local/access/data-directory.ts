import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { StartError } from '../start-error.ts';
import { type Authority, type CertifiedKey, makeAuthority, makeServerCertificate } from './certificate.ts';

/** What the local mode keeps between starts; with `--ephemeral` a temporary folder that goes when it stops. */
export interface DataDirectory {
  readonly path: string;
  readonly ephemeral: boolean;
  file(name: string): string;
  /** Removes it when ephemeral. */
  dispose(): void;
}

export function openDataDirectory(path: string | undefined): DataDirectory {
  const ephemeral = path === undefined;
  let folder: string;
  try {
    folder = ephemeral ? mkdtempSync(join(tmpdir(), 'nodekeeper-')) : resolve(path);
    mkdirSync(join(folder, 'data'), { recursive: true });
  } catch (cause) {
    throw new StartError(`the data directory ${path} cannot be made: ${(cause as Error).message}`, { cause });
  }
  return {
    path: folder,
    ephemeral,
    file: (name) => join(folder, name),
    dispose: () => {
      if (ephemeral) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface Credentials {
  readonly authority: Authority;
  readonly server: CertifiedKey;
  readonly adminToken: string;
  readonly viewerToken: string;
  readonly fleetToken: string;
}

const AUTHORITY_NAME = 'nodekeeper local';
const SERVER_NAMES = ['localhost', '127.0.0.1', '::1'];
const AUTHORITY_VALID_DAYS = 3_650;
const SERVER_VALID_DAYS = 397;
const PRIVATE = 0o600;

/** The authority and tokens are made once a data directory, the server's certificate on every start. */
export async function openCredentials(data: DataDirectory, nowMs: number): Promise<Credentials> {
  const keep = async (name: string, make: () => string | Promise<string>): Promise<string> => {
    const file = data.file(name);
    if (existsSync(file)) return readFileSync(file, 'utf8');
    const content = await make();
    writeFileSync(file, content, { mode: PRIVATE });
    return content;
  };

  let made: Authority | undefined;
  const authority = async (): Promise<Authority> => {
    made ??= await makeAuthority({ commonName: AUTHORITY_NAME, nowMs, validDays: AUTHORITY_VALID_DAYS });
    return made;
  };
  // The key first: a certificate without its key would be of no use.
  const privateKeyPem = await keep('ca.key', async () => (await authority()).privateKeyPem);
  if (made !== undefined) rmSync(data.file('ca.pem'), { force: true });
  const certificatePem = await keep('ca.pem', () => {
    if (made === undefined)
      throw new StartError(`${data.file('ca.pem')} is missing: delete ${data.file('ca.key')} as well`);
    return made.certificatePem;
  });
  const kept: Authority = { commonName: AUTHORITY_NAME, certificatePem, privateKeyPem };

  const newToken = () => randomBytes(32).toString('base64url');
  const tokens = JSON.parse(
    await keep('tokens.json', () => JSON.stringify({ admin: newToken(), fleet: newToken() })),
  ) as {
    admin: string;
    fleet: string;
  };
  const viewerToken = await keep('viewer-token', newToken);
  return {
    authority: kept,
    server: await makeServerCertificate(kept, { names: SERVER_NAMES, nowMs, validDays: SERVER_VALID_DAYS }),
    adminToken: tokens.admin,
    viewerToken,
    fleetToken: tokens.fleet,
  };
}

/**
 * A kubeconfig with the authority inlined, for the administrator and, in a context of its own, for somebody who may only
 * look. The first token opens everything, so only the file's owner may read it.
 */
export function writeKubeconfig(
  file: string,
  options: { readonly url: string; readonly caPem: string; readonly token: string; readonly viewerToken: string },
): void {
  const authority = Buffer.from(options.caPem).toString('base64');
  const lines = [
    'apiVersion: v1',
    'kind: Config',
    'current-context: nodekeeper',
    'clusters:',
    '- name: nodekeeper',
    '  cluster:',
    `    server: ${options.url}`,
    `    certificate-authority-data: ${authority}`,
    'users:',
    '- name: nodekeeper-admin',
    '  user:',
    `    token: ${options.token}`,
    '- name: nodekeeper-viewer',
    '  user:',
    `    token: ${options.viewerToken}`,
    'contexts:',
    '- name: nodekeeper',
    '  context:',
    '    cluster: nodekeeper',
    '    user: nodekeeper-admin',
    '    namespace: default',
    '- name: nodekeeper-viewer',
    '  context:',
    '    cluster: nodekeeper',
    '    user: nodekeeper-viewer',
    '    namespace: default',
    '',
  ];
  rmSync(file, { force: true });
  writeFileSync(file, lines.join('\n'), { mode: PRIVATE });
}
