'use strict';
// Only the rows in sight are elements: scrolling through 100,000 of them moves thirty.
const HEIGHT = 28, MORE = 10;
const data = JSON.parse(document.getElementById('data').textContent);
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const escaped = (text) => text.replace(HIDDEN, (c) => c === '\n' ? '\u21b5' : c === '\t' ? '\u21e5'
  : '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// The text of a cell, with what differs from the other side marked.
function cell(className, text, other, whole) {
  const made = element(whole ? 'td' : 'div', (whole ? '' : 'cell ') + className);
  if (text === null || text === undefined || text === '') {
    made.append(element('span', 'none', text === '' ? "'' (empty)" : 'null'));
    return made;
  }
  const shown = whole ? (t) => t.replace(HIDDEN, (c) => c === '\n' || c === '\t' ? c : escaped(c)) : escaped;
  if (typeof other !== 'string') {
    made.append(other === undefined ? shown(text) : element('mark', '', shown(text)));
    return made;
  }
  const [start, end] = middle(text, other);
  made.append(shown(text.slice(0, start)), element('mark', '', shown(text.slice(start, end)).replace(/ /g, '\u00b7')),
    shown(text.slice(end)));
  return made;
}

// Where one text differs from another: from the first to the last character that is not the same.
function middle(one, other) {
  const least = Math.min(one.length, other.length);
  let start = 0, end = 0;
  while (start < least && one[start] === other[start]) start += 1;
  while (end < least - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  return [start, one.length - end];
}

class View {
  constructor(place, widths, names, all, draw) {
    this.place = document.getElementById(place);
    this.draw = draw;
    this.place.replaceChildren();
    this.place.style.setProperty('--wide', widths);
    const head = element('div', 'head');
    names.forEach((name) => head.append(element('div', '', name)));
    this.rows = element('div', 'rows');
    this.place.append(head, this.rows);
    this.place.addEventListener('scroll', () => this.later(), { passive: true });
    window.addEventListener('resize', () => this.later());
    this.show(all);
  }
  later() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.paint(); });
  }
  show(found) {
    this.found = found;
    this.rows.style.height = found.length * HEIGHT + 'px';
    this.place.scrollTop = 0;
    this.paint();
  }
  paint() {
    const first = Math.max(0, Math.floor(this.place.scrollTop / HEIGHT) - MORE);
    const last = Math.min(this.found.length, first + Math.ceil(this.place.clientHeight / HEIGHT) + 2 * MORE);
    const drawn = [];
    for (let at = first; at < last; at += 1) {
      const row = element('div', 'row');
      row.style.top = at * HEIGHT + 'px';
      this.draw(row, this.found[at]);
      drawn.push(row);
    }
    this.rows.replaceChildren(...drawn);
  }
}

function choices(place, names) {
  const select = document.getElementById(place);
  select.append(new Option('all', ''));
  names.forEach(([name, count], at) => select.append(new Option(name + ' (' + count.toLocaleString('en') + ')', at)));
  return select;
}

function watched(view, all, select, find, shown, fits) {
  const telling = document.getElementById(shown), typed = document.getElementById(find);
  const look = () => {
    const chosen = select.value, words = typed.value.toLowerCase();
    const found = chosen || words ? all.filter((row) => fits(row, chosen, words)) : all;
    telling.textContent = found.length.toLocaleString('en') + ' shown';
    view.show(found);
  };
  select.addEventListener('change', look);
  typed.addEventListener('input', () => { clearTimeout(view.typing); view.typing = setTimeout(look, 120); });
  look();
}

const has = (text, words) => typeof text === 'string' && text.toLowerCase().includes(words);
const place = (number) => number === null ? '' : number.toLocaleString('en');

function whole(key) {
  const table = element('table'), head = element('tr');
  ['column', 'local', 'cloud'].forEach((name) => head.append(element('th', '', name)));
  table.append(head);
  data.differences.filter((row) => row[0] === key).forEach(([, column, local, cloud]) => {
    const line = element('tr');
    line.append(element('td', '', data.columns[column][0]), cell('local', local, cloud, true), cell('cloud', cloud, local, true));
    table.append(line);
  });
  const title = element('p', 'soft', 'all changed cells of key ' + escaped(key));
  document.getElementById('whole').replaceChildren(title, table);
}

const cells = new View('differences', 'minmax(8rem, 1fr) minmax(7rem, .8fr) minmax(12rem, 2fr) minmax(12rem, 2fr)',
  ['key', 'column', 'local', 'cloud'], [], (row, [key, column, local, cloud]) => {
    row.append(cell('', key), cell('', data.columns[column][0]), cell('local', local, cloud), cell('cloud', cloud, local));
    row.addEventListener('click', () => whole(key));
  });
watched(cells, data.differences, choices('column', data.columns), 'find', 'shown',
  (row, chosen, words) => (!chosen || row[1] === +chosen)
    && (!words || has(row[0], words) || has(row[2], words) || has(row[3], words)));

const rows = new View('rows', '14rem minmax(12rem, 2fr) 8rem 8rem', ['status', 'key', 'row local', 'row cloud'], [],
  (row, [status, key, local, cloud]) => row.append(element('div', '', data.statuses[status][0]),
    cell('', key), element('div', '', place(local)), element('div', '', place(cloud))));
watched(rows, data.rows, choices('status', data.statuses), 'find-row', 'shown-rows',
  (row, chosen, words) => (!chosen || row[0] === +chosen) && (!words || has(row[1], words)));
