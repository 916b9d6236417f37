/**
 * The thread that answers the service control manager. No answer waits for the event loop of the agent: under Wine 8,
 * with an event loop that was blocked for 5 s, the next control was answered after 31 ms. It imports nothing but what
 * loads the libraries.
 *
 * Only a service learns of a shutdown in time (the preshutdown control), and one that answers late counts as hanging.
 * So the process of the agent is the service, and calls Windows through the prebuilt native part of koffi. A service in
 * C with Node.js as its child needs a compiler, and two processes that must learn of each other's end. Wrappers such as
 * NSSM do not pass the preshutdown control on. Checkpoints rise also while the event loop hangs, so the preshutdown
 * time-out bounds them.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { foreign, windowsLibraries } from './foreign.ts';
import type { FromService, ServiceOptions, ToService } from './service-messages.ts';

const OWN_PROCESS = 0x10;
const ACCEPT_STOP = 0x1;
const ACCEPT_PRESHUTDOWN = 0x100;
const STATE_STOPPED = 1;
const STATE_START_PENDING = 2;
const STATE_STOP_PENDING = 3;
const STATE_RUNNING = 4;
const CONTROL_STOP = 0x1;
const CONTROL_INTERROGATE = 0x4;
const CONTROL_PRESHUTDOWN = 0xf;
const NO_ERROR = 0;
const NOT_IMPLEMENTED = 120;
/** Between two checkpoints. The wait hint is longer: a late checkpoint is no hang. Milliseconds. */
const CHECKPOINT_MS = 1_000;
const WAIT_HINT_MS = 5_000;

interface Status {
  readonly type: number;
  readonly state: number;
  readonly accepted: number;
  readonly exitCode: number;
  readonly specific: number;
  readonly checkPoint: number;
  readonly waitHint: number;
}

const { preshutdownControl = CONTROL_PRESHUTDOWN } = workerData as ServiceOptions;
const send = (message: FromService): void => parentPort?.postMessage(message);

const { advapi32, lastError } = windowsLibraries();
const koffi = foreign();
koffi.struct('ServiceStatus', {
  type: 'uint32',
  state: 'uint32',
  accepted: 'uint32',
  exitCode: 'uint32',
  specific: 'uint32',
  checkPoint: 'uint32',
  waitHint: 'uint32',
});
const mainType = koffi.pointer(koffi.proto('void __stdcall ServiceMain(uint32 count, void *args)'));
const handlerType = koffi.pointer(
  koffi.proto('uint32 __stdcall ServiceHandler(uint32 control, uint32 type, void *data, void *context)'),
);
koffi.struct('ServiceEntry', { name: 'str16', main: mainType });
const dispatch = advapi32.func<(table: readonly object[]) => boolean>(
  'bool __stdcall StartServiceCtrlDispatcherW(ServiceEntry *table)',
);
const registerHandler = advapi32.func<(name: string, handler: unknown, context: null) => bigint | null>(
  'void *__stdcall RegisterServiceCtrlHandlerExW(str16 name, void *handler, void *context)',
);
const setStatus = advapi32.func<(handle: bigint, status: Status) => boolean>(
  'bool __stdcall SetServiceStatus(void *handle, ServiceStatus *status)',
);

let handle: bigint | null = null;
let state = STATE_START_PENDING;
let checkPoint = 0;
let checkpoints: NodeJS.Timeout | undefined;

function report(next: number, exitCode = NO_ERROR): void {
  if (handle === null) return;
  state = next;
  const isPending = next === STATE_STOP_PENDING;
  checkPoint = isPending ? checkPoint + 1 : 0;
  setStatus(handle, {
    type: OWN_PROCESS,
    state: next,
    accepted: next === STATE_RUNNING ? ACCEPT_STOP | ACCEPT_PRESHUTDOWN : 0,
    exitCode,
    specific: 0,
    checkPoint,
    waitHint: isPending ? WAIT_HINT_MS : 0,
  });
}

/** Checkpoints rise until the agent reports its end, or until this time is over. */
function beginStop(limitMs: number): void {
  const untilMs = performance.now() + limitMs;
  report(STATE_STOP_PENDING);
  checkpoints = setInterval(() => {
    if (performance.now() < untilMs) report(STATE_STOP_PENDING);
    else clearInterval(checkpoints);
  }, CHECKPOINT_MS);
}

let limitMs = 0;
const STOP_LIMIT_MS = 30_000;

const handler = koffi.register((control: number): number => {
  if (control === CONTROL_INTERROGATE) return NO_ERROR;
  const isPreshutdown = control === CONTROL_PRESHUTDOWN || control === preshutdownControl;
  if (!isPreshutdown && control !== CONTROL_STOP) return NOT_IMPLEMENTED;
  if (state === STATE_RUNNING) {
    // Without a graceful shutdown the end of the machine is a stop like others.
    const isGraceful = isPreshutdown && limitMs > 0;
    beginStop(isGraceful ? limitMs : STOP_LIMIT_MS);
    send({ kind: isGraceful ? 'preshutdown' : 'stop' });
  }
  return NO_ERROR;
}, handlerType);

const main = koffi.register((_count: number, args: bigint): void => {
  const name = String(koffi.decode(args, 'str16'));
  handle = registerHandler(name, handler, null);
  if (handle === null) {
    send({ kind: 'failed', message: `RegisterServiceCtrlHandlerExW: error ${lastError()} of Windows` });
    return;
  }
  report(STATE_RUNNING);
  send({ kind: 'started', name });
}, mainType);

parentPort?.on('message', (message: ToService) => {
  if (message.kind === 'limit') {
    limitMs = message.limitMs;
    return;
  }
  clearInterval(checkpoints);
  report(STATE_STOPPED, message.exitCode);
});

const table = [
  { name: '', main },
  { name: null, main: null },
];
dispatch.async(table, (error, isServed) => {
  // A program that the service control manager did not start is no service: an error of Windows, and no fault.
  if (error !== null) send({ kind: 'failed', message: error.message });
  else if (!isServed) send({ kind: 'notService' });
  else send({ kind: 'ended' });
  parentPort?.close();
});
