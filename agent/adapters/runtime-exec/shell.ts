/** What the command lines of containers know about /bin/sh. */
import { accessSync, constants, statSync } from 'node:fs';

export const SHELL = '/bin/sh';
/** Passes variables with names that a shell does not accept. */
export const ENV = '/usr/bin/env';
/** Variables that a shell sets by itself. */
export const SHELL_VARIABLES: readonly string[] = ['PWD', 'OLDPWD', 'SHLVL', '_'];
/** Names that a shell accepts for variables. */
export const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The text as one argument of a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Code of execve(2) for a path; undefined if it can be executed. */
export function executableFault(path: string): 'ENOENT' | 'EACCES' | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? undefined : 'EACCES';
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    return code === 'EACCES' || code === 'EPERM' ? 'EACCES' : 'ENOENT';
  }
}
