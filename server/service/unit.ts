/**
 * The systemd units of `nodekeeper serve`: of a cluster, and of a hub, which may run on the same machine.
 *
 * Its user is a dynamic one: nothing has to be created, and nothing of it remains. The database is in the state
 * directory, which systemd assigns to that user at each start. Files that options name are credentials: systemd reads
 * them as root, so a private key stays readable for root alone. A file that changes is read at the next start.
 *
 * What stays open, with `systemd-analyze security` at 1.4: the network, child processes that notify (notify.ts), and
 * memory that is written and then executed, which the compiler of Node needs.
 */
import { resolve } from 'node:path';
import { HUB_NODE_FLAGS, NODE_FLAGS } from '../../shared/config/serve-flags.mjs';
import { StartError } from '../../shared/host/start-error.ts';
import { isLoopback, type ServeOptions, type UpstreamOptions } from '../options.ts';

export interface Service {
  /** Of the unit. */
  readonly name: string;
  readonly description: string;
  /** Below /var/lib. That of the agent of the same machine is `nodekeeper`. */
  readonly state: string;
  readonly database: string;
}

const CLUSTER: Service = {
  name: 'nodekeeper.service',
  description: 'the cluster of this machine',
  state: 'nodekeeper-server',
  database: 'nodekeeper.db',
};
const HUB: Service = {
  name: 'nodekeeper-hub.service',
  description: 'a hub of a cluster',
  state: 'nodekeeper-hub',
  database: 'replica.db',
};

export const serviceOf = ({ upstream }: Pick<ServeOptions, 'upstream'>): Service =>
  upstream === undefined ? CLUSTER : HUB;

/** The first line of a unit that is ours. */
export const unitMark = ({ name }: Service): string =>
  `# Written by \`nodekeeper serve --install\`, which replaces it. For changes: systemctl edit ${name.replace('.service', '')}`;

export interface Program {
  /** Absolute paths: Node.js, and the file that it starts. */
  readonly node: string;
  readonly main: string;
}

/** @throws StartError for options that no service has */
export function unitText(options: ServeOptions, program: Program): string {
  const service = serviceOf(options);
  const { description, state } = service;
  const files = filesOf(options);
  const flags = service === HUB ? HUB_NODE_FLAGS : NODE_FLAGS;
  const words = [program.node, ...flags, program.main, '--data', `/var/lib/${state}`, ...wordsOf(options)];
  const command = [
    ...words.map(quoted),
    ...files.map(({ option }) => `--${option} "\${CREDENTIALS_DIRECTORY}/${option}"`),
  ];
  // Ports below 1024 are those of the machine's own users.
  const isLowPort = options.port > 0 && options.port < 1_024;
  const capability = isLowPort ? 'CAP_NET_BIND_SERVICE' : '';
  const isOnItsOwn = isLoopback(options.host) && options.tables === undefined && options.upstream === undefined;
  return `${unitMark(service)}
[Unit]
Description=Nodekeeper: ${description}
Wants=network-online.target
After=network-online.target time-sync.target
# A machine without people near it: it is tried again for ever.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=all
ExecStart=${command.join(' ')}
Environment=MALLOC_ARENA_MAX=2 NODE_COMPILE_CACHE=/var/cache/${state}
Restart=always
RestartSec=5
# A start reads what a crash left of the log, and checks a small database.
TimeoutStartSec=300
TimeoutStopSec=15
# The signal to stop is for the server alone, which notifies systemd of the stop by a process of its own.
KillMode=mixed
# An event loop that stands still. A full or read-only disk is no reason.
WatchdogSec=60
WatchdogSignal=SIGKILL
MemoryMax=2G
OOMScoreAdjust=-500
TasksMax=128
LimitNOFILE=65536
# A dump would have keys and tokens in it.
LimitCORE=0

DynamicUser=yes
StateDirectory=${state}
StateDirectoryMode=0700
CacheDirectory=${state}
CacheDirectoryMode=0700
${files.map(({ option, path }) => `LoadCredential=${option}:${path.replaceAll('%', '%%')}\n`).join('')}UMask=0077
CapabilityBoundingSet=${capability}
AmbientCapabilities=${capability}
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
# A user namespace of its own has no right to low ports.
PrivateUsers=${isLowPort ? 'no' : 'yes'}
DevicePolicy=closed
ProtectProc=invisible
ProcSubset=pid
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
${isOnItsOwn ? 'IPAddressDeny=any\nIPAddressAllow=localhost\n' : ''}SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`;
}

/** @throws StartError */
function filesOf(options: ServeOptions): readonly { readonly option: string; readonly path: string }[] {
  const named = [
    ['tls-cert', options.certificate?.certificateFile],
    ['tls-key', options.certificate?.keyFile],
    ['client-ca', options.clientCaFile],
    ['tokens', options.tokensFile],
    ['policy', options.policyFile],
    ['upstream-token', options.upstream?.tokenFile],
    ['upstream-cert', options.upstream?.certificate?.certificateFile],
    ['upstream-key', options.upstream?.certificate?.keyFile],
    ['upstream-ca', options.upstream?.caFile],
  ] as const;
  return named.flatMap(([option, file]) => {
    if (file === undefined) return [];
    const path = resolve(file);
    if (/[\n\r]/.test(path)) throw new StartError(`--${option}: a line break cannot stand in a unit`);
    return [{ option, path }];
  });
}

/** Options that name no file. */
function wordsOf(options: ServeOptions): string[] {
  const { host, port, names, tables, upstream, controllers, log, quiet } = options;
  return [
    ...['--listen', host, '--port', String(port)],
    ...(upstream === undefined ? [] : hubWords(upstream)),
    ...(tables === undefined ? fileWords(options) : tableWords(tables)),
    // The address is a name already.
    ...names.filter((name) => name !== host).flatMap((name) => ['--name', name]),
    ...(controllers || tables !== undefined ? [] : ['--no-controllers']),
    ...['--log', log.format, '--log-level', log.level],
    ...(quiet ? ['--quiet'] : []),
  ];
}

const hubWords = ({ url, siteHub, powerOff }: UpstreamOptions): string[] => [
  ...['--upstream', url.href],
  ...(siteHub === undefined ? [] : ['--site-hub', siteHub]),
  ...(powerOff === undefined ? [] : ['--power-off', powerOff]),
];

const fileWords = ({ clusterId, synchronous, upstream }: ServeOptions): string[] => [
  ...(upstream === undefined ? ['--cluster-id', clusterId] : []),
  ...['--synchronous', synchronous],
];

const tableWords = ({ region, stack, clusterId }: NonNullable<ServeOptions['tables']>): string[] => [
  ...['--store', 'dynamodb', '--region', region, '--stack', stack],
  ...(clusterId === undefined ? [] : ['--cluster-id', clusterId]),
];

/** A word of a command line of systemd.service(5). @throws StartError */
function quoted(word: string): string {
  if (/[\n\r]/.test(word)) throw new StartError('a line break cannot stand in a unit');
  if (/^[\w./:=@-]+$/.test(word)) return word;
  return `"${word.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}
