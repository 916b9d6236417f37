/** All pods by list and watch, once for all views that show them, and for a while after the last of them closed. */
import { useEffect, useState } from 'preact/hooks';
import type { KubePod } from '../../shared/kinds/types.ts';
import { cutText } from '../model/page-health.ts';
import { type PodRow, podRowOf } from '../model/pod-rows.ts';
import { podKeyOf } from '../model/pods.ts';
import { clusterClock } from './clock.ts';
import { messageOf } from './cluster-feed.ts';
import { whileShown } from './page-visibility.ts';
import { listAndWatch, type WatchTarget } from './watch.ts';

/** 30,000 pods. */
const PAGES_MAX = 60;
const NOTIFY_MS = 250;
const KEPT_MS = 60_000;

export interface Pods {
  /** By NAMESPACE/NAME. Changes in place. */
  readonly pods: ReadonlyMap<string, PodRow>;
  /** The first list is complete. */
  readonly isListed: boolean;
  /** Why they are not current or not complete. */
  readonly failure: string | undefined;
  /** Grows with every change. */
  readonly version: number;
}

const NONE: Pods = { pods: new Map(), isListed: false, failure: undefined, version: 0 };
let current = NONE;
let disconnect: (() => void) | undefined;
let ending: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function usePods(): Pods {
  const [shown, setShown] = useState(current);
  useEffect(() => {
    const onChange = (): void => setShown(current);
    listeners.add(onChange);
    clearTimeout(ending);
    disconnect ??= connect();
    onChange();
    return () => {
      listeners.delete(onChange);
      if (listeners.size > 0) return;
      ending = setTimeout(() => {
        disconnect?.();
        disconnect = undefined;
        current = NONE;
      }, KEPT_MS);
    };
  }, []);
  return shown;
}

function connect(): () => void {
  let pods = new Map<string, PodRow>();
  let isListed = false;
  let isListCut = false;
  let failure: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const change = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      const missing = isListCut ? cutText('pods', pods.size) : undefined;
      current = { pods, isListed, failure: failure ?? missing, version: current.version + 1 };
      for (const listener of listeners) listener();
    }, NOTIFY_MS);
  };
  const put = (pod: KubePod): void => {
    const row = podRowOf(pod, clusterClock.nowMs());
    pods.set(podKeyOf(row), row);
  };
  const target: WatchTarget<KubePod> = {
    path: '/api/v1/pods',
    pagesMax: PAGES_MAX,
    onListStart() {
      pods = new Map();
      isListed = false;
    },
    onListPage(items) {
      items.forEach(put);
      change();
    },
    onListEnd(isCut) {
      isListed = true;
      isListCut = isCut;
      change();
    },
    onChange(type, pod) {
      if (type === 'DELETED') pods.delete(`${pod.metadata.namespace}/${pod.metadata.name}`);
      else put(pod);
      change();
    },
    onState(error) {
      failure = error === undefined ? undefined : messageOf(error);
      change();
    },
  };
  const end = whileShown((signal) => void listAndWatch(target, signal));
  return () => {
    end();
    clearTimeout(timer);
  };
}
