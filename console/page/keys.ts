/** Keys of the whole page, as in k9s. */
import { useEffect } from 'preact/hooks';

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input:not([type=checkbox]), select, textarea, [contenteditable]');

const focusOn = (selector: string): boolean => {
  const element = document.querySelector<HTMLElement>(selector);
  element?.focus();
  return element !== null;
};

/** `/` moves to the filter, `:` to the jump field, Escape and j or k to the table. */
export function useKeys(): void {
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
      const wanted = { '/': '[data-filter]', ':': '[data-jump]', j: '[data-grid]', k: '[data-grid]' }[event.key];
      if (wanted === undefined || document.activeElement?.matches(wanted)) return;
      if (focusOn(wanted) || (event.key === '/' && focusOn('[data-jump]'))) event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}
