/** The log of a container, followed while it is shown. */
import { h, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from './cluster-feed.ts';
import { Choice, Failure } from './elements.ts';
import { API, refusalOf } from './requests.ts';

const TAIL_LINES = 500;
const CHARACTERS_MAX = 400_000;
const DRAW_MS = 200;

interface LogsProps {
  readonly namespace: string;
  readonly pod: string;
  readonly containers: readonly string[];
}

export function Logs({ namespace, pod, containers }: LogsProps): JSX.Element {
  const [container, setContainer] = useState(containers[0] ?? '');
  const [isPrevious, setIsPrevious] = useState(false);
  const { text, state, failure } = useLog(namespace, pod, container, isPrevious);
  const view = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (view.current !== null && isAtEnd.current) view.current.scrollTop = view.current.scrollHeight;
  }, [text]);
  return h(
    'section',
    { 'aria-labelledby': 'logs-title' },
    h(
      'div',
      { class: 'section-head' },
      h('h3', { id: 'logs-title' }, 'Logs'),
      containers.length < 2
        ? null
        : h(Choice, {
            label: 'Container',
            value: container,
            options: containers.map((name) => [name, name] as const),
            onChoose: setContainer,
          }),
      h(
        'label',
        null,
        h('input', {
          type: 'checkbox',
          checked: isPrevious,
          onChange: (event: Event) => setIsPrevious((event.currentTarget as HTMLInputElement).checked),
        }),
        ' before its last restart',
      ),
      h('span', { class: 'note', role: 'status' }, state),
    ),
    h(Failure, { message: failure }),
    h(
      'pre',
      {
        ref: view,
        class: 'log',
        tabIndex: 0,
        role: 'region',
        'aria-label': `Log of ${container}`,
        onScroll: ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: { currentTarget: HTMLElement }) => {
          isAtEnd.current = scrollTop + clientHeight > scrollHeight - 30;
        },
      },
      text,
    ),
  );
}

interface Log {
  readonly text: string;
  readonly state: string;
  readonly failure: string | undefined;
}

function useLog(namespace: string, pod: string, container: string, isPrevious: boolean): Log {
  const [log, setLog] = useState<Log>({ text: '', state: 'being read…', failure: undefined });
  useEffect(() => {
    const ending = new AbortController();
    let text = '';
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (state: string, failure?: string): void => setLog({ text, state, failure });
    const read = async (): Promise<void> => {
      const query = new URLSearchParams({
        container,
        tailLines: String(TAIL_LINES),
        ...(isPrevious ? { previous: 'true' } : { follow: 'true' }),
      });
      const response = await fetch(`${API}/api/v1/namespaces/${namespace}/pods/${pod}/log?${query}`, {
        signal: ending.signal,
      });
      if (!response.ok) throw await refusalOf(response);
      show(isPrevious ? '' : 'live');
      if (response.body === null) return;
      for await (const part of response.body.pipeThrough(
        new TextDecoderStream() as TransformStream<Uint8Array, string>,
      )) {
        text = (text + part).slice(-CHARACTERS_MAX);
        timer ??= setTimeout(() => {
          timer = undefined;
          show(isPrevious ? '' : 'live');
        }, DRAW_MS);
      }
    };
    const run = async (): Promise<void> => {
      let failure: string | undefined;
      try {
        await read();
      } catch (error) {
        failure = messageOf(error);
      }
      clearTimeout(timer);
      if (!ending.signal.aborted) show('ended', failure);
    };
    setLog({ text: '', state: 'being read…', failure: undefined });
    void run();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [namespace, pod, container, isPrevious]);
  return log;
}
