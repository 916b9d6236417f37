/** The writes of the console: cordon, planned silence, and the taint out-of-service. */
import { type ComponentChildren, h, type JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { cellOf } from '../model/node-cell.ts';
import { TERMS } from '../model/terms.ts';
import { messageOf } from './cluster-feed.ts';
import { Failure } from './elements.ts';
import { postAction } from './requests.ts';

interface ActionsProps {
  readonly name: string;
  readonly node: KubeNode;
  /** Why the user may not write; undefined when it may. */
  readonly readOnly: string | undefined;
}

export function NodeActions({ name, node, readOnly }: ActionsProps): JSX.Element {
  const [failure, setFailure] = useState<string | undefined>(undefined);
  const [isRunning, setIsRunning] = useState(false);
  const isCordoned = node.spec?.unschedulable === true;
  const isOut = (node.spec?.taints ?? []).some(({ key }) => key === 'node.kubernetes.io/out-of-service');
  const isPlanned = cellOf(node).plannedSilence !== undefined;
  const run = async (body: object): Promise<void> => {
    setIsRunning(true);
    setFailure(undefined);
    try {
      await postAction({ node: name, ...body });
    } catch (error) {
      setFailure(messageOf(error));
    }
    setIsRunning(false);
  };
  const common: ButtonState = {
    disabled: readOnly !== undefined || isRunning,
    'aria-describedby': readOnly === undefined ? undefined : 'read-only',
  };
  return h(
    'div',
    { class: 'actions' },
    h(
      'button',
      { ...common, type: 'button', onClick: () => run({ action: isCordoned ? 'uncordon' : 'cordon' }) },
      isCordoned ? 'Uncordon' : 'Cordon',
    ),
    isPlanned
      ? h('button', { ...common, type: 'button', onClick: () => run({ action: 'endSilence' }) }, 'End planned silence')
      : h(WithDialog, {
          text: 'Announce silence…',
          button: { ...common, title: TERMS['planned silence'] },
          dialog: (close) => h(SilenceDialog, { name, close, onConfirm: run }),
        }),
    h(WithDialog, {
      text: isOut ? 'Out of service' : 'Taint out-of-service…',
      button: { ...common, class: 'danger', disabled: common.disabled || isOut },
      dialog: (close) => h(OutOfServiceDialog, { name, close, onConfirm: run }),
    }),
    readOnly === undefined ? null : h('p', { id: 'read-only', class: 'note' }, readOnly),
    h(Failure, { message: failure }),
  );
}

interface ButtonState {
  readonly class?: string;
  readonly title?: string;
  readonly disabled: boolean;
  readonly 'aria-describedby': string | undefined;
}

interface WithDialogProps {
  readonly text: string;
  readonly button: ButtonState;
  readonly dialog: (close: () => void) => JSX.Element;
}

/** A button that opens a dialog, and has the focus again when it closes. */
function WithDialog({ text, button, dialog }: WithDialogProps): JSX.Element {
  const [isOpen, setIsOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const open = (): void => setIsOpen(true);
  const close = (): void => {
    setIsOpen(false);
    opener.current?.focus();
  };
  return h(
    'span',
    null,
    h('button', { ...button, type: 'button', ref: opener, onClick: open }, text),
    isOpen ? dialog(close) : null,
  );
}

interface DialogProps {
  readonly name: string;
  readonly close: () => void;
  /** Sends the action. */
  readonly onConfirm: (body: object) => void;
}

export interface FormDialogProps {
  readonly title: string;
  readonly text: string;
  readonly confirm: JSX.IntrinsicElements['button'];
  readonly confirmText: string;
  readonly close: () => void;
  readonly onSubmit: () => void;
  readonly children?: ComponentChildren;
}

export function FormDialog(props: FormDialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return h(
    'dialog',
    { ref: dialog, 'aria-labelledby': 'dialog-title', onCancel: props.close },
    h(
      'form',
      {
        onSubmit: (event: Event) => {
          event.preventDefault();
          props.onSubmit();
        },
      },
      h('h3', { id: 'dialog-title' }, props.title),
      h('p', null, props.text),
      props.children,
      h(
        'div',
        { class: 'actions' },
        h('button', { type: 'button', onClick: props.close }, 'Cancel'),
        h('button', { type: 'submit', ...props.confirm }, props.confirmText),
      ),
    ),
  );
}

const HOUR_SECONDS = 3_600;
const SILENCES: readonly (readonly [seconds: number, text: string])[] = [
  [HOUR_SECONDS / 2, '30 minutes'],
  [2 * HOUR_SECONDS, '2 hours'],
  [8 * HOUR_SECONDS, '8 hours'],
  [24 * HOUR_SECONDS, '1 day'],
  [7 * 24 * HOUR_SECONDS, '7 days'],
  // Less than the 30 days that the API permits by its own clock.
  [28 * 24 * HOUR_SECONDS, '28 days'],
];
/** The API has the same limit. */
const REASON_CHARACTERS_MAX = 200;

function SilenceDialog({ name, close, onConfirm }: DialogProps): JSX.Element {
  const [seconds, setSeconds] = useState(2 * HOUR_SECONDS);
  const [reason, setReason] = useState('');
  return h(
    FormDialog,
    {
      title: `Announce the silence of ${name}?`,
      text: 'Until its end the node is not marked and its pods are not evicted. No new pod is scheduled to it.',
      confirm: {},
      confirmText: `Announce silence of ${name}`,
      close,
      onSubmit() {
        close();
        onConfirm({ action: 'announceSilence', seconds, reason: reason.trim() });
      },
    },
    h('label', { for: 'silence-time' }, 'How long'),
    h(
      'select',
      {
        id: 'silence-time',
        value: String(seconds),
        onChange: (event: Event) => setSeconds(Number((event.currentTarget as HTMLSelectElement).value)),
      },
      SILENCES.map(([each, text]) => h('option', { key: each, value: String(each) }, text)),
    ),
    h('label', { for: 'silence-reason' }, 'Reason'),
    h('input', {
      id: 'silence-reason',
      autocomplete: 'off',
      maxLength: REASON_CHARACTERS_MAX,
      value: reason,
      onInput: (event: Event) => setReason((event.currentTarget as HTMLInputElement).value),
    }),
  );
}

function OutOfServiceDialog({ name, close, onConfirm }: DialogProps): JSX.Element {
  const [typed, setTyped] = useState('');
  return h(
    FormDialog,
    {
      title: `Taint ${name} out-of-service?`,
      text:
        'Its pods are deleted without waiting for the kubelet, and its volumes are detached. ' +
        'Data is lost if the machine still runs. Make sure that it is shut down.',
      confirm: { class: 'danger', disabled: typed !== name },
      confirmText: `Taint ${name}`,
      close,
      onSubmit() {
        if (typed !== name) return;
        close();
        onConfirm({ action: 'outOfService', confirmation: typed });
      },
    },
    h('label', { for: 'confirm-name' }, 'Name of the node'),
    h('input', {
      id: 'confirm-name',
      autocomplete: 'off',
      value: typed,
      onInput: (event: Event) => setTyped((event.currentTarget as HTMLInputElement).value),
    }),
  );
}
