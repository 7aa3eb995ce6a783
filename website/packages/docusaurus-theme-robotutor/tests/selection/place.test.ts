// @vitest-environment jsdom
import fc from 'fast-check';
import {describe, expect, it} from 'vitest';

import {placeControl} from '../../src/selection/place';

const view = {top: 60, bottom: 800, width: 1000};
const control = {width: 120, height: 32};
const line = (x: number, y: number): DOMRect => new DOMRect(x, y, 200, 20);

describe('the control next to a selection', () => {
  it('is below the selection, farther away on a touch screen, and above if there is no room', () => {
    expect(placeControl(line(100, 300), line(100, 300), control, view, false)?.y).toBe(328);
    expect(placeControl(line(100, 770), line(100, 770), control, view, false)?.y).toBe(730);
    expect(placeControl(line(100, 300), line(100, 300), control, view, true)?.y).toBe(348);
  });

  it('is missing if the selection is scrolled away', () => {
    expect(placeControl(line(100, -90), line(100, -50), control, view, false)).toBeNull();
    expect(placeControl(line(100, 900), line(100, 950), control, view, false)).toBeNull();
  });

  it('stays inside of the window', () => {
    const coordinate = fc.integer({min: -2000, max: 3000});
    fc.assert(
      fc.property(coordinate, coordinate, fc.nat(3000), fc.boolean(), (x, y, height, isTouch) => {
        const place = placeControl(line(x, y), line(x, y + height), control, view, isTouch);
        if (!place) return;
        expect(place.x).toBeGreaterThanOrEqual(0);
        expect(place.x + control.width).toBeLessThanOrEqual(view.width);
        expect(place.y).toBeGreaterThanOrEqual(view.top);
        expect(place.y + control.height).toBeLessThanOrEqual(view.bottom);
      }),
    );
  });
});
