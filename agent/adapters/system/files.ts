/** Functions of node:fs as promises. node:fs/promises would load 1 MB of unused code: line readers, watchers. */
import * as fs from 'node:fs';
import { promisify } from 'node:util';

export const { W_OK } = fs.constants;
export const access = promisify(fs.access);
export const close = promisify(fs.close);
export const fchmod = promisify(fs.fchmod);
export const fsync = promisify(fs.fsync);
export const link = promisify(fs.link);
export const open = promisify(fs.open);
export const readdir = promisify(fs.readdir);
export const readFile = promisify(fs.readFile);
export const readlink = promisify(fs.readlink);
export const rename = promisify(fs.rename);
export const rm = promisify(fs.rm);
export const stat = promisify(fs.stat);
export const statfs = promisify(fs.statfs);
export const symlink = promisify(fs.symlink);
export const writeFile = promisify(fs.writeFile);
