import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { SIMULATED_FLEET_GROUP } from '../access/access-entry.ts';
import type { StaticTokenConfig } from '../config/static-tokens.ts';
import { type Authority, type CertifiedKey, makeAuthority, makeServerCertificate } from './certificate.ts';
import type { DataDirectory } from './data-directory.ts';
import { StartError } from './start-error.ts';
import { replaceFile } from './write-file.ts';

export interface ServerCredentials {
  readonly authority: Authority;
  readonly server: CertifiedKey;
  /** Another certificate of the server, valid from now on. */
  readonly signServer: (nowMs: number) => Promise<CertifiedKey>;
}

export interface Credentials extends ServerCredentials {
  readonly adminToken: string;
  readonly viewerToken: string;
  readonly fleetToken: string;
}

const AUTHORITY_NAME = 'nodekeeper local';
/** Names and addresses of this machine for programs on it. */
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '::1'];
/** What pods call the API by: the Service `kubernetes`. */
const SERVICE_NAMES = [
  '10.96.0.1',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];
const AUTHORITY_VALID_DAYS = 3_650;
const SERVER_VALID_DAYS = 397;
/** What a damaged file is not: an empty token would open the API to everybody. */
const PEM_PATTERN = /^-----BEGIN [A-Z ]+-----\n[\s\S]+\n-----END [A-Z ]+-----\n$/;
/** 32 bytes in base64url. */
const TOKEN_PATTERN = /^[\w-]{43}$/;
const TOKENS_PATTERN = /^\{"admin":"[\w-]{43}","fleet":"[\w-]{43}"\}$/;

/**
 * The authority and tokens are made once a data directory, the server's certificate on every start.
 *
 * @param names further names and addresses of the server
 * @throws StartError for a damaged file
 */
export async function openCredentials(
  data: DataDirectory,
  nowMs: number,
  names: readonly string[] = [],
): Promise<Credentials> {
  const server = await openServerCredentials(data, nowMs, names);
  // On a command line, a hyphen at the beginning is that of an option.
  const newToken = () => randomBytes(32).toString('base64url').replace(/^-/, 'A');
  const newTokens = () => JSON.stringify({ admin: newToken(), fleet: newToken() });
  const kept = await keep(data, 'tokens.json', TOKENS_PATTERN, newTokens);
  const { admin: adminToken, fleet: fleetToken } = JSON.parse(kept) as { admin: string; fleet: string };
  const viewerToken = await keep(data, 'viewer-token', TOKEN_PATTERN, newToken);
  return { ...server, adminToken, viewerToken, fleetToken };
}

/** The same for a process without users of its own. */
export async function openServerCredentials(
  data: DataDirectory,
  nowMs: number,
  names: readonly string[],
): Promise<ServerCredentials> {
  let made: Authority | undefined;
  const authority = async (): Promise<Authority> => {
    made ??= await makeAuthority({ commonName: AUTHORITY_NAME, nowMs, validDays: AUTHORITY_VALID_DAYS });
    return made;
  };
  // The key first: a certificate without its key would be of no use.
  const privateKeyPem = await keep(data, 'ca.key', PEM_PATTERN, async () => (await authority()).privateKeyPem);
  if (made !== undefined) rmSync(data.file('ca.pem'), { force: true });
  const certificatePem = await keep(data, 'ca.pem', PEM_PATTERN, () => {
    if (made === undefined)
      throw new StartError(`${data.file('ca.pem')} is missing: delete ${data.file('ca.key')} as well`);
    return made.certificatePem;
  });
  const kept: Authority = { commonName: AUTHORITY_NAME, certificatePem, privateKeyPem };
  const serverNames = [...new Set([...LOOPBACK_NAMES, ...SERVICE_NAMES, ...names])];
  /** With the authority behind it: a machine that joins knows the hash of its key alone. */
  const signServer = async (atMs: number): Promise<CertifiedKey> => {
    const signed = await makeServerCertificate(kept, { names: serverNames, nowMs: atMs, validDays: SERVER_VALID_DAYS });
    return { ...signed, certificatePem: signed.certificatePem + certificatePem };
  };
  return { authority: kept, server: await signServer(nowMs), signServer };
}

/** The content of a file that is made once. */
async function keep(
  data: DataDirectory,
  name: string,
  pattern: RegExp,
  make: () => string | Promise<string>,
): Promise<string> {
  const file = data.file(name);
  if (!existsSync(file)) replaceFile(file, await make(), { sync: true });
  const content = readFileSync(file, 'utf8');
  if (pattern.test(content)) return content;
  throw new StartError(
    `${file} is damaged (${content.length} characters): put it back, or delete it for a new one, which old kubeconfigs do not match`,
  );
}

/** Hashes only, as in a deployment: the tokens themselves stay in the data directory. */
export function staticTokensOf(tokens: Credentials): readonly StaticTokenConfig[] {
  const entry = (token: string, user: string, ...groups: string[]) => ({
    sha256: createHash('sha256').update(token).digest('hex'),
    user,
    groups,
  });
  return [
    entry(tokens.adminToken, 'admin', 'system:masters'),
    entry(tokens.viewerToken, 'viewer', 'nodekeeper:viewers'),
    entry(tokens.fleetToken, 'fleet', 'system:masters', SIMULATED_FLEET_GROUP),
  ];
}

/**
 * A kubeconfig with the authority inlined, for the administrator and, in a context of its own, for somebody who may
 * only look. The first token opens everything, so only the file's owner may read it.
 */
export function writeKubeconfig(
  file: string,
  options: {
    readonly url: string;
    /** undefined: clients use the authorities of their system. */
    readonly caPem: string | undefined;
    readonly token: string;
    readonly viewerToken: string;
  },
): void {
  const lines = [
    'apiVersion: v1',
    'kind: Config',
    'current-context: nodekeeper',
    'clusters:',
    '- name: nodekeeper',
    '  cluster:',
    `    server: ${options.url}`,
    ...(options.caPem === undefined
      ? []
      : [`    certificate-authority-data: ${Buffer.from(options.caPem).toString('base64')}`]),
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
  replaceFile(file, lines.join('\n'));
}
