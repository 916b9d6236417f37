/**
 * nodekeeper-agent images [--json] [--config FILE] [--FLAG VALUE …]
 *
 * Lists the images of the pods that this machine starts without the API, and whether a start without a network has
 * them. Nothing is pulled. Exit code 0: it has all; 1: not all; 2: that cannot be found out.
 */
import { columns } from '../../shared/text-columns.ts';
import { hostSystem } from '../adapters/config/host-system.ts';
import { type LoadedConfig, withConfigFile } from '../adapters/config/load-config.ts';
import { type OfflineConfig, readOffline } from '../adapters/doctor/measure-offline.ts';
import { describeConfigFault } from '../rules/config-settings.ts';
import { imageTodo } from '../rules/doctor-offline.ts';
import { type OfflineImage, type OfflineReading, offlineImages, podsThatWait } from '../rules/offline-start.ts';

export const IMAGES_USAGE = `Usage: nodekeeper-agent images [--json] [--config FILE] [--FLAG VALUE …]

  --config FILE   the agent's configuration (${hostSystem.configFile})
  --json          as JSON

Lists the images of the pods that this machine starts without the API, and whether a start without a network has them:
here, missing, or always pulled (imagePullPolicy: Always). Exit code 0: all are here; 1: not all are; 2: unknown.
`;

export interface ImagesIo {
  /** Prints one line. */
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  readonly loadConfig: (args: readonly string[]) => LoadedConfig;
  /** Path of podman. Default: podman on the PATH. */
  readonly podman?: string;
}

const ALL_HERE = 0;
const NOT_ALL = 1;
const UNKNOWN = 2;

/** @param args the arguments after `images`. Returns the exit code. */
export async function images(args: readonly string[], io: ImagesIo): Promise<number> {
  const isJson = args.includes('--json');
  const loaded = io.loadConfig(withConfigFile(args.filter((each) => each !== '--json')));
  if (loaded.kind === 'help') {
    io.print(IMAGES_USAGE.trimEnd());
    return ALL_HERE;
  }
  if (loaded.kind === 'faults') {
    for (const fault of loaded.faults) io.printError(describeConfigFault(fault));
    return UNKNOWN;
  }
  const { runtime } = loaded.config;
  if (runtime !== 'podman') {
    if (isJson) io.print(JSON.stringify({ runtime, images: [], waiting: [], complaints: [] }, undefined, 2));
    else io.print(NO_IMAGES[runtime]);
    return ALL_HERE;
  }
  return report(loaded.config, await readOffline(loaded.config, io.podman), isJson, io);
}

const NO_IMAGES = {
  exec: 'runtime exec: containers are processes of this machine, no image is pulled.',
  none: 'runtime none: this machine runs no pods.',
} as const;

function report({ rootDirectory }: OfflineConfig, reading: OfflineReading, isJson: boolean, io: ImagesIo): number {
  const { remembered, staticFaults, images: read } = reading;
  if (remembered.kind === 'forbidden') {
    io.printError(
      `The pods in ${rootDirectory} cannot be read: ${remembered.why}. Run as root: sudo nodekeeper-agent images`,
    );
    return UNKNOWN;
  }
  if (read.kind === 'failed') {
    io.printError(`The images of podman cannot be read: ${read.why}`);
    return UNKNOWN;
  }
  const rows = offlineImages(reading, read.here);
  const waiting = podsThatWait(reading);
  const refusals = remembered.kind === 'read' ? remembered.refusals : [];
  const complaints = [...refusals.map((why) => `what this machine ran before cannot be used: ${why}`), ...staticFaults];
  if (isJson) {
    io.print(JSON.stringify({ runtime: 'podman', images: rows, waiting, complaints }, undefined, 2));
  } else {
    for (const complaint of complaints) io.printError(complaint);
    for (const line of [...tableOf(rows), ...notesOf(reading, rows, waiting)]) io.print(line);
  }
  return complaints.length === 0 && rows.every(({ state }) => state === 'here') ? ALL_HERE : NOT_ALL;
}

const STATES: Readonly<Record<OfflineImage['state'], string>> = {
  here: 'here',
  missing: 'missing',
  alwaysPulled: 'always pulled',
};

function tableOf(rows: readonly OfflineImage[]): readonly string[] {
  if (rows.length === 0) return [];
  const cells = rows.map(({ image, state, pods }) => [image, STATES[state], pods.join(', ')]);
  return columns([['IMAGE', 'WITHOUT A NETWORK', 'PODS'], ...cells], '   ');
}

function notesOf(
  { remembered }: OfflineReading,
  rows: readonly OfflineImage[],
  waiting: readonly string[],
): readonly string[] {
  const lacking = rows.filter(({ state }) => state !== 'here');
  const isNothingWritten = remembered.kind === 'read' && !remembered.isAnyUsable && remembered.refusals.length === 0;
  return [
    ...(remembered.kind === 'off' ? ['rememberPods is none: only static pods start without the API.'] : []),
    ...(isNothingWritten
      ? ['This machine remembers no pods yet: the agent writes them when the API has answered.']
      : []),
    ...(rows.length === 0 ? ['No pod that starts without the API needs an image.'] : []),
    ...(waiting.length > 0 ? [`Start when the API answers, with a network: ${waiting.join(', ')}`] : []),
    ...(lacking.length > 0 ? [imageTodo(lacking)] : []),
  ];
}
