/** Keys of the whole page, as in k9s. */
import { h, type JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { TERMS } from '../model/terms.ts';
import { Table } from './elements.ts';

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input:not([type=checkbox]), select, textarea, [contenteditable]');

const focusOn = (selector: string): boolean => {
  const element = document.querySelector<HTMLElement>(selector);
  element?.focus();
  return element !== null;
};

/** `/` moves to the filter, `:` to the jump field, Escape and j or k to the table, `?` opens the help. */
export function useKeys(openHelp: () => void): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') !== null) return;
      if (isTyping(event.target)) {
        if (
          event.key === 'Escape' ||
          (event.key === 'Enter' && (event.target as HTMLElement).matches('[data-filter]'))
        ) {
          focusOn('[data-grid]');
        }
        return;
      }
      if (event.key === '?') {
        event.preventDefault();
        openHelp();
        return;
      }
      const wanted = { '/': '[data-filter]', ':': '[data-jump]', j: '[data-grid]', k: '[data-grid]' }[event.key];
      if (wanted === undefined || document.activeElement?.matches(wanted)) return;
      if (focusOn(wanted) || (event.key === '/' && focusOn('[data-jump]'))) event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}

const KEYS: readonly (readonly [keys: string, text: string])[] = [
  ['?', 'this help'],
  [':', 'jump to a node, a pod (NAMESPACE/NAME) or a view by the begin of its name'],
  ['/', 'filter the table: a text, label=value, zone=, status=, node=, kind='],
  ['Escape', 'back from a filter to the table; closes a dialog'],
  ['j k ↓ ↑', 'next and previous row'],
  ['g G', 'first and last row'],
  ['Page Down, Page Up', '15 rows'],
  ['Enter', 'opens the row, the node of a cell, or the moment of the timeline'],
  ['x, Space', 'selects the row, for an action on several nodes'],
  ['← →', 'between the cells of a zone, and from change to change in the timeline'],
];

/** The keys, and the words that are ours. */
export function KeysHelp({ close }: { readonly close: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return h(
    'dialog',
    { ref: dialog, class: 'help', 'aria-labelledby': 'help-title', onClose: close },
    h(
      'div',
      { class: 'section-head' },
      h('h3', { id: 'help-title' }, 'Keys'),
      h('button', { type: 'button', onClick: () => dialog.current?.close() }, 'Close'),
    ),
    h(Table, {
      caption: 'Keys',
      columns: ['Key', 'What it does'],
      rows: KEYS.map(([keys, text]) => [h('kbd', null, keys), text]),
      empty: '',
    }),
    h('h3', null, 'Words'),
    h(Table, { caption: 'Words', columns: ['Word', 'What it means'], rows: Object.entries(TERMS), empty: '' }),
  );
}
