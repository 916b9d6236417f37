/** Loads the agent's configuration from its command line, its configuration file, and the files named there. */

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { KUBERNETES_YAML, readYaml } from '../../../shared/config/yaml-documents.ts';
import { defined } from '../../../shared/defined.ts';
import { authorityHash } from '../../../shared/host/authority-hash.ts';
import type { AgentConfig } from '../../config.ts';
import { BOOLEAN_FLAGS, FLAGS } from '../../rules/config-fields.ts';
import { type CheckedConfig, type ConfigFault, checkConfig, type FileSetting } from '../../rules/config-settings.ts';
import { atNewAddress, MOVED_FILE } from '../../rules/moved.ts';
import type { SystemDefaults } from '../../rules/system-defaults.ts';
import { PINNED_AUTHORITY_FILE } from '../http/pinned-authority.ts';
import { updateKeyOf } from '../updates/update-source.ts';
import { hostSystem } from './host-system.ts';

export type LoadedConfig =
  | { readonly kind: 'ok'; readonly config: AgentConfig; readonly warnings: readonly string[] }
  | { readonly kind: 'help'; readonly text: string }
  /** All faults: first those of the file, then of the flags, then of the resulting configuration. */
  | { readonly kind: 'faults'; readonly faults: readonly ConfigFault[]; readonly warnings: readonly string[] };

export interface ConfigSources {
  /** Text of a file; throws as readFileSync does. */
  readonly readText: (path: string) => string;
  readonly hostname: () => string;
  /** Default: that of this machine. */
  readonly system?: SystemDefaults;
}

const SYSTEM: ConfigSources = { readText: (path) => readFileSync(path, 'utf8'), hostname };

export const USAGE = `Usage: nodekeeper-agent [--config FILE] [--FLAG VALUE …]
       nodekeeper-agent sleep --for TIME [--reason TEXT] [--config FILE]
       nodekeeper-agent relay init --directory DIR --name NAME[,NAME…]
       nodekeeper-agent plan shutdown|limits|swap|topology --config FILE --pods FILE [--json]
       nodekeeper-agent doctor [--json] [--windows-shutdown] [--config FILE]
       nodekeeper-agent images [--json] [--config FILE]
       nodekeeper-agent --version

  --config FILE   KubeletConfiguration (kubelet.config.k8s.io/v1beta1) and AgentConfiguration
                  (nodekeeper.dev/v1alpha1), as documents of one YAML or JSON file

Flags win over the file: ${Object.keys(FLAGS)
  .map((name) => `--${name}`)
  .join(', ')}
`;

/** The command line of a command that people type: the agent's configuration file is the default. */
export function withConfigFile(args: readonly string[]): readonly string[] {
  const hasConfig = args.some((each) => each === '--config' || each.startsWith('--config='));
  return hasConfig ? args : ['--config', hostSystem.configFile, ...args];
}

/** @param args the command line without the program */
export function loadConfig(args: readonly string[], sources: ConfigSources = SYSTEM): LoadedConfig {
  const line = readCommandLine(args);
  if (line.help) return { kind: 'help', text: USAGE };
  const file = line.config === undefined ? { documents: [], faults: [] } : readConfigFile(line.config, sources);
  const checked = checkConfig({
    documents: file.documents,
    flags: line.flags,
    hostname: sources.hostname(),
    system: sources.system ?? hostSystem,
  });
  const named = readNamedFiles(checked, sources);
  // A setting in a malformed file is not reported as missing.
  const own = file.faults.length > 0 ? checked.faults.filter(({ at }) => at !== undefined) : checked.faults;
  const inline = AUTHORITIES.flatMap((field): ConfigFault[] => {
    const complaint = complaintAbout(checked.config[field]);
    return complaint === undefined ? [] : [{ field, message: `${field}: ${complaint}` }];
  });
  const updateKey = named.texts.updatePublicKey ?? checked.config.updatePublicKey;
  const keyComplaint = updateKey === undefined || updateKey === '' ? undefined : updateKeyComplaint(updateKey);
  if (keyComplaint !== undefined) {
    const field = named.texts.updatePublicKey === undefined ? 'updatePublicKey' : 'updatePublicKeyFile';
    inline.push({ field, message: `${field}: ${keyComplaint}` });
  }
  const faults = [...line.faults, ...file.faults, ...own, ...named.faults, ...inline];
  const { warnings } = checked;
  if (faults.length > 0) return { kind: 'faults', faults, warnings };
  const config = withKeptAuthority({ ...checked.config, ...named.texts }, sources);
  return { kind: 'ok', config: Object.freeze(atNewAddress(config, movedTextIn(config, sources))), warnings };
}

/** The authority that was found by its hash is on the disk. */
function withKeptAuthority(config: AgentConfig, { readText }: ConfigSources): AgentConfig {
  if (config.caHash === undefined) return config;
  try {
    const certificateAuthority = readText(join(config.rootDirectory, PINNED_AUTHORITY_FILE));
    return authorityHash(certificateAuthority) === config.caHash ? { ...config, certificateAuthority } : config;
  } catch {
    return config;
  }
}

/** Undefined: the cluster did not move, as far as this machine knows. */
function movedTextIn({ rootDirectory }: AgentConfig, { readText }: ConfigSources): string | undefined {
  try {
    return readText(join(rootDirectory, MOVED_FILE));
  } catch {
    return undefined;
  }
}

/** Settings that are certificates. */
const AUTHORITIES = ['certificateAuthority', 'heartbeatCertificateAuthority', 'hubCertificateAuthority'] as const;

interface CommandLine {
  readonly help: boolean;
  readonly config: string | undefined;
  readonly flags: Readonly<Record<string, string>>;
  readonly faults: readonly ConfigFault[];
}

function readCommandLine(args: readonly string[]): CommandLine {
  const named = Object.fromEntries(
    ['config', ...Object.keys(FLAGS)].map((name) => [name, { type: 'string' as const }]),
  );
  const { tokens } = parseArgs({
    // A boolean flag may have no value. The next argument is then not its value.
    args: args.map((arg) => (BOOLEAN_FLAGS.includes(arg.replace(/^--/, '')) ? `${arg}=true` : arg)),
    options: { ...named, help: { type: 'boolean', short: 'h' } },
    strict: false,
    tokens: true,
  });
  const values: Record<string, string> = {};
  const faults: ConfigFault[] = [];
  let help = false;
  for (const token of tokens) {
    if (token.kind === 'positional') {
      faults.push({ field: '', message: `${JSON.stringify(token.value)}: expected a flag` });
    } else if (token.kind === 'option') {
      if (token.name === 'help') help = true;
      else if (!Object.hasOwn(named, token.name)) {
        faults.push({ field: '', message: `${token.rawName}: no such flag` });
      } else if (token.value === undefined) {
        faults.push({ field: '', message: `${token.rawName}: expected a value` });
      } else values[token.name] = token.value;
    }
  }
  const { config, ...flags } = values;
  return { help, config, flags, faults };
}

const causeText = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));

function readConfigFile(path: string, { readText }: ConfigSources) {
  let text: string;
  try {
    text = readText(path);
  } catch (cause) {
    return { documents: [], faults: [{ field: '', message: `--config cannot be read: ${causeText(cause)}` }] };
  }
  const read = readYaml(text, path, KUBERNETES_YAML);
  if (read.kind === 'read') return { documents: read.documents, faults: [] };
  return { documents: [], faults: read.faults.map(({ message, at }) => ({ field: '', message, at })) };
}

/** The files named in the configuration: their text, for tokens without surrounding blanks. */
function readNamedFiles({ files }: CheckedConfig, { readText }: ConfigSources) {
  const texts: Partial<Record<FileSetting['setting'], string>> = {};
  const faults: ConfigFault[] = [];
  for (const { setting, field, path, at } of files) {
    try {
      const text = readText(path);
      const isAuthority = AUTHORITIES.some((each) => each === setting);
      texts[setting] = isAuthority ? text : text.trim();
      if (text.trim() === '') throw new Error(`${path} is empty`);
      const complaint = isAuthority ? complaintAbout(text) : undefined;
      if (complaint === undefined) continue;
      faults.push({ field, message: `${field} ${JSON.stringify(path)}: ${complaint}`, ...defined({ at }) });
    } catch (cause) {
      const message = `${field} cannot be read: ${causeText(cause)}`;
      faults.push({ field, message, ...defined({ at }) });
    }
  }
  return { texts, faults };
}

const complaintAbout = (certificates: string | undefined): string | undefined =>
  certificates === undefined ? undefined : certificateComplaint(certificates);

/** Why a text is not a key for releases of the agent; undefined if it is. */
function updateKeyComplaint(pem: string): string | undefined {
  try {
    updateKeyOf(pem);
    return undefined;
  } catch (cause) {
    return `expected a public key of Ed25519 in PEM: ${causeText(cause)}`;
  }
}

/** Why a text is not a list of certificates; undefined if it is. */
function certificateComplaint(text: string): string | undefined {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return 'expected certificates in PEM';
  for (const [index, block] of blocks.entries()) {
    try {
      new X509Certificate(block);
    } catch (cause) {
      return `certificate ${index + 1} of ${blocks.length} cannot be read: ${causeText(cause)}`;
    }
  }
  return undefined;
}
