/** The address of the page: its fragment chooses view, filter and order. */
import { useEffect, useState } from 'preact/hooks';
import { type Address, parseAddress, withQuery } from '../model/address.ts';

/** The address at this moment: a view may not have been drawn since its last change. */
export const currentAddress = (): Address => parseAddress(location.hash);

export function useAddress(): Address {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const onChange = (): void => setHash(location.hash);
    addEventListener('hashchange', onChange);
    // It may have changed since the first drawing.
    setHash(location.hash);
    return () => removeEventListener('hashchange', onChange);
  }, []);
  return parseAddress(hash);
}

/** Changes the filter of the view, without another entry in the history. */
export function setQuery(address: Address, changes: Readonly<Record<string, string>>): void {
  history.replaceState(undefined, '', withQuery(address, changes));
  dispatchEvent(new HashChangeEvent('hashchange'));
}
