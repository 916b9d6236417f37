import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { DEMO_OPTIONS, DEMO_USAGE, type DemoOptions, demoOptionsOf } from '../demo/options.ts';
import { DEFAULT_STACK } from '../shared/aws/cloudformation/stack-name.ts';
import { defined } from '../shared/defined.ts';
import { oneOf, optionValues, wholeNumber } from '../shared/host/command-line.ts';
import { StartError } from '../shared/host/start-error.ts';
import type { CertificateFiles } from './certificate.ts';
import { isLogLevel, LOG_LEVELS, type LogLevel } from './log.ts';
import type { StackName } from './tables/deployed-tables.ts';
import { stackIn } from './tables/stack-options.ts';

/** What `nodekeeper serve` was asked for. */
export interface ServeOptions {
  readonly help: boolean;
  /** What to do with the service of systemd. Undefined: it runs in this process. */
  readonly service: 'install' | 'uninstall' | undefined;
  /** Undefined: nothing is kept. */
  readonly dataDirectory: string | undefined;
  /** False: it is the one that is used without `--data`. */
  readonly isDataNamed: boolean;
  readonly host: string;
  readonly port: number;
  /** Names and addresses in the certificate, besides those of loopback and `host`. */
  readonly names: readonly string[];
  /** A certificate of the user's own. Absent: one that the authority of the data directory signs. */
  readonly certificate: CertificateFiles | undefined;
  /** Authorities of client certificates, PEM. */
  readonly clientCaFile: string | undefined;
  /** Users with tokens, in place of those that are generated. */
  readonly tokensFile: string | undefined;
  readonly clusterId: string;
  /** The tables of a deployed stack in place of a file. */
  readonly tables: StackName | undefined;
  /** Only prints what this process needs to be allowed. */
  readonly printsPolicy: boolean;
  /** False: nothing changes by itself. */
  readonly controllers: boolean;
  readonly policyFile: string | undefined;
  readonly synchronous: 'full' | 'normal';
  readonly log: { readonly format: 'plain' | 'json'; readonly level: LogLevel };
  readonly quiet: boolean;
  /** Simulated machines, EC2 and the console beside the cluster. Undefined: none. */
  readonly demo: DemoOptions | undefined;
  /** This process is a hub of that cluster. Undefined: it is a cluster itself. */
  readonly upstream: UpstreamOptions | undefined;
}

/** A cluster, and the hub's own credentials there: a token or a certificate. */
export interface UpstreamOptions {
  readonly url: URL;
  readonly tokenFile: string | undefined;
  readonly certificate: CertificateFiles | undefined;
  /** Undefined: the authorities of Node. */
  readonly caFile: string | undefined;
  /** Its user name there, if it decides about pods of its site. Undefined: it decides about none. */
  readonly siteHub?: string | undefined;
  /** Absolute path of a program that ends the power of a machine of its site. Undefined: the site has none. */
  readonly powerOff?: string | undefined;
}

export const DEFAULT_DATA_DIRECTORY = '.nodekeeper';
const DEFAULT_CLUSTER_ID = 'nodekeeper';
/** The form that a deployment requires: it names the cluster in tokens, which stay valid when it moves there. */
const CLUSTER_ID = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

export const SERVE_USAGE = `usage: nodekeeper serve [options]

  --data DIR         where the database, tokens and the kubeconfig are kept (${DEFAULT_DATA_DIRECTORY})
  --ephemeral        keep nothing
  --listen ADDRESS   address of the API (127.0.0.1)
  --port N           its port (6443; 0: any free one)
  --name NAME        a further name or address in the certificate; repeatable
  --tls-cert FILE    certificate chain in PEM, with --tls-key; read again when it changes (its own authority)
  --tls-key FILE     its private key
  --client-ca FILE   authorities of client certificates in PEM: CN is the user, each O a group
  --tokens FILE      users in place of the generated ones: a JSON list of {sha256, user, groups}
  --cluster-id ID    names the cluster in tokens (${DEFAULT_CLUSTER_ID})
  --store sqlite|dynamodb
                     dynamodb: the tables of a deployed stack; its functions keep doing the work (sqlite)
  --region REGION    of the stack (AWS_REGION, else AWS_DEFAULT_REGION)
  --stack NAME       (${DEFAULT_STACK})
  --print-policy     prints what this process needs to be allowed by IAM, and ends
  --upstream URL     a hub of the cluster at this https URL: a copy of its objects that answers reads, also offline
  --upstream-token FILE
                     the token of the hub at the cluster; read again when it changes
  --upstream-cert FILE, --upstream-key FILE
                     or its certificate there, in PEM
  --site-hub USER    decides where the pods of SitePolicies with this user run: its own at the cluster (none)
  --power-off FILE   with --site-hub: a program that switches off the machine of the node in its argument (none)
  --upstream-ca FILE authorities of the cluster's certificate in PEM (those of Node.js)
  --no-controllers   no ticks, and no work after changes: nothing changes by itself
  --policy FILE      YAML file of policy fields
  --synchronous full|normal
                     normal answers before the disk has the data: a power cut may lose the last writes (full)
  --log plain|json   format of the log (plain)
  --log-level LEVEL  ${LOG_LEVELS.join(', ')} (info)
  --quiet            nothing but the log
  --install          as a service of systemd, with the other options; again: replaces it
  --uninstall        removes the service, with --upstream that of a hub, and keeps its data
  --demo             simulated machines, a simulated EC2 and the console; with it:
${DEMO_USAGE}
  --help             this text`;

/** @throws StartError with one line on what is wrong */
export function parseServeOptions(args: readonly string[]): ServeOptions {
  const values = parse(args);
  if (values.ephemeral === true && values.data !== undefined)
    throw new StartError('--ephemeral and --data exclude each other');
  if (values.install === true && values.uninstall === true)
    throw new StartError('--install and --uninstall exclude each other');
  const upstream = upstreamOf(values);
  const host = values.listen ?? '127.0.0.1';
  if (host !== 'localhost' && isIP(host) === 0) throw new StartError(`--listen must be an IP address, not ${host}`);
  if (
    upstream === undefined &&
    !LOOPBACK.has(host) &&
    ((values.tokens ?? values['client-ca']) === undefined || values.demo === true)
  ) {
    const why = values.demo === true ? 'without --demo' : 'with --tokens FILE or --client-ca FILE';
    throw new StartError(
      `--listen ${host} is possible only ${why}: the generated tokens are for programs on this machine`,
    );
  }
  if (values.demo === true && values.tokens !== undefined) {
    throw new StartError('--tokens and --demo exclude each other: the simulated machines use a generated token');
  }
  const clusterId = values['cluster-id'] ?? DEFAULT_CLUSTER_ID;
  if (!CLUSTER_ID.test(clusterId)) {
    throw new StartError('--cluster-id must be lower-case letters, digits and dashes, 63 at most');
  }
  const tables = tablesOf(values);
  const level = values['log-level'] ?? 'info';
  if (!isLogLevel(level)) throw new StartError(`--log-level must be ${LOG_LEVELS.join(', ')}, not ${level}`);
  return {
    help: values.help ?? false,
    service: values.install === true ? 'install' : values.uninstall === true ? 'uninstall' : undefined,
    dataDirectory: values.ephemeral === true ? undefined : (values.data ?? DEFAULT_DATA_DIRECTORY),
    isDataNamed: values.data !== undefined,
    host,
    port: wholeNumber('port', values.port, { otherwise: 6443, least: 0, most: 65_535 }),
    names: [...(LOOPBACK.has(host) || isIP(host) === 0 ? [] : [host]), ...(values.name ?? [])],
    clientCaFile: values['client-ca'],
    tokensFile: values.tokens,
    certificate: certificateOf(values, ['tls-cert', 'tls-key']),
    clusterId,
    tables,
    printsPolicy: values['print-policy'] ?? false,
    controllers: tables === undefined && (values.controllers ?? true),
    policyFile: values.policy,
    synchronous: oneOf('synchronous', values.synchronous, ['full', 'normal']),
    log: { format: oneOf('log', values.log, ['plain', 'json']), level },
    quiet: values.quiet ?? false,
    demo: demoOf(values),
    upstream,
  };
}

function tablesOf(values: ReturnType<typeof parse>): StackName | undefined {
  if (oneOf('store', values.store, ['sqlite', 'dynamodb']) === 'sqlite') {
    const stray = (['region', 'stack', 'print-policy'] as const).find((name) => values[name] !== undefined);
    if (stray === undefined) return undefined;
    throw new StartError(`--${stray} needs --store dynamodb`);
  }
  if (values.demo === true || values.synchronous !== undefined) {
    throw new StartError('--store dynamodb excludes --demo and --synchronous');
  }
  return { ...stackIn(values, '--store dynamodb'), clusterId: values['cluster-id'] };
}

export const isLoopback = (host: string): boolean => LOOPBACK.has(host);

function certificateOf(
  values: ReturnType<typeof parse>,
  [certificate, key]: readonly ['tls-cert', 'tls-key'] | readonly ['upstream-cert', 'upstream-key'],
): CertificateFiles | undefined {
  const { [certificate]: certificateFile, [key]: keyFile } = values;
  if (certificateFile === undefined && keyFile === undefined) return undefined;
  if (certificateFile === undefined || keyFile === undefined)
    throw new StartError(`--${certificate} and --${key} need each other`);
  return { certificateFile, keyFile };
}

/** A hub has no users, controllers, tables and id of its own. A certificate of a client could not be passed on. */
const NOT_OF_A_HUB = ['demo', 'store', 'controllers', 'policy', 'tokens', 'client-ca', 'cluster-id'] as const;

function upstreamOf(values: ReturnType<typeof parse>): UpstreamOptions | undefined {
  const certificate = certificateOf(values, ['upstream-cert', 'upstream-key']);
  const { upstream, 'upstream-token': tokenFile, 'upstream-ca': caFile } = values;
  const { 'site-hub': siteHub, 'power-off': program } = values;
  if (upstream === undefined) {
    if ([certificate, tokenFile, caFile, siteHub, program].every((value) => value === undefined)) return undefined;
    throw new StartError(
      '--upstream-token, --upstream-cert, --upstream-ca, --site-hub and --power-off need --upstream',
    );
  }
  if (program !== undefined && siteHub === undefined) throw new StartError('--power-off needs --site-hub');
  const stray = NOT_OF_A_HUB.find((name) => values[name] !== undefined);
  if (stray !== undefined) {
    throw new StartError(`--upstream and --${values[stray] === false ? 'no-' : ''}${stray} exclude each other`);
  }
  const url = URL.parse(upstream);
  if (url?.protocol !== 'https:' || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new StartError(`--upstream must be an https URL, such as https://192.0.2.7:6443, not ${upstream}`);
  }
  if (values.uninstall !== true && (tokenFile === undefined) === (certificate === undefined)) {
    throw new StartError('--upstream needs --upstream-token FILE, or --upstream-cert FILE and --upstream-key FILE');
  }
  if (siteHub !== undefined && values.synchronous === 'normal') {
    throw new StartError('--site-hub needs --synchronous full: a power cut must not undo what it has decided');
  }
  const powerOff = program === undefined ? undefined : resolve(program);
  return { url, tokenFile, certificate, caFile, ...defined({ siteHub, powerOff }) };
}

function demoOf(values: ReturnType<typeof parse>): DemoOptions | undefined {
  if (values.demo === true) return demoOptionsOf(values);
  const stray = (['nodes', 'zones', 'ec2-nodes', 'fleet', 'console'] as const).find(
    (name) => values[name] !== undefined,
  );
  if (stray === undefined) return undefined;
  throw new StartError(`--${values[stray] === false ? 'no-' : ''}${stray} needs --demo`);
}

const parse = (args: readonly string[]) =>
  optionValues(args, {
    help: { type: 'boolean', short: 'h' },
    ephemeral: { type: 'boolean' },
    data: { type: 'string' },
    listen: { type: 'string' },
    port: { type: 'string' },
    name: { type: 'string', multiple: true },
    'tls-cert': { type: 'string' },
    'tls-key': { type: 'string' },
    'client-ca': { type: 'string' },
    tokens: { type: 'string' },
    'cluster-id': { type: 'string' },
    store: { type: 'string' },
    region: { type: 'string' },
    stack: { type: 'string' },
    'print-policy': { type: 'boolean' },
    upstream: { type: 'string' },
    'upstream-token': { type: 'string' },
    'upstream-cert': { type: 'string' },
    'upstream-key': { type: 'string' },
    'upstream-ca': { type: 'string' },
    'site-hub': { type: 'string' },
    'power-off': { type: 'string' },
    controllers: { type: 'boolean' },
    policy: { type: 'string' },
    synchronous: { type: 'string' },
    log: { type: 'string' },
    'log-level': { type: 'string' },
    quiet: { type: 'boolean' },
    install: { type: 'boolean' },
    uninstall: { type: 'boolean' },
    demo: { type: 'boolean' },
    ...DEMO_OPTIONS,
  });
