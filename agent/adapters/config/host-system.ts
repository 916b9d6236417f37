import { LINUX_DEFAULTS, type SystemDefaults, WINDOWS_DEFAULTS } from '../../rules/system-defaults.ts';

/** Of the machine that this process runs on. */
export const hostSystem: SystemDefaults = process.platform === 'win32' ? WINDOWS_DEFAULTS : LINUX_DEFAULTS;
