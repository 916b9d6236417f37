/** Archives with bytes that depend on their content only. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

/** Of every file in every archive: 2020-01-01. Seconds. */
export const FILE_SECONDS = 1_577_836_800;

/** Writes a folder as a compressed archive. @param name of the folder in the archive */
export function packFolder(parent: string, name: string, archive: string): void {
  execFileSync('tar', [
    ...REPRODUCIBLE,
    '--owner=0',
    '--group=0',
    '-C',
    parent,
    '-I',
    'gzip -n -6',
    '-cf',
    archive,
    name,
  ]);
}

/** Writes the content of a folder as an archive, uncompressed. @param owner user and group of every file */
export function packContent(folder: string, archive: string, owner = 0): void {
  const members = readdirSync(folder).toSorted();
  execFileSync('tar', [
    ...REPRODUCIBLE,
    `--owner=${owner}`,
    `--group=${owner}`,
    '-C',
    folder,
    '-cf',
    archive,
    ...members,
  ]);
}

const REPRODUCIBLE = [
  '--sort=name',
  `--mtime=@${FILE_SECONDS}`,
  '--numeric-owner',
  '--mode=u=rwX,go=rX',
  '--format=gnu',
];
